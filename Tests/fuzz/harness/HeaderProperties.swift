internal import KedgeModel

let headerTargets = [
    FuzzTarget(name: "range") { checkRange($0.text) },
    FuzzTarget(name: "entity-tags") { checkEntityTags($0.text) },
    FuzzTarget(name: "content-disposition") { checkContentDisposition($0.text) },
    FuzzTarget(name: "migration-name") { checkMigrationName($0.text) },
]

/// - Parameter text: Size of the file, a space, and the value of `Range`.
private func checkRange(_ text: String) {
    let parts = text.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, let fileSize = WireInteger.parse(parts[0]) else { return }
    guard case .ranges(let ranges) = RangeHeader(String(parts[1]), fileSize: fileSize) else {
        return
    }
    require((1...RangeHeader.maxRangeCount).contains(ranges.count), "the count is bounded")
    require(ranges.allSatisfy { !$0.isEmpty && $0.end <= fileSize }, "ranges lie in the file")
    let written = ranges.map { "\($0.start)-\($0.end - 1)" }.joined(separator: ",")
    require(
        RangeHeader("bytes=\(written)", fileSize: fileSize) == .ranges(ranges),
        "what is written reads back")
}

private func checkEntityTags(_ text: String) {
    let etag = "\"0123abcd\""
    let matches = EntityTags.ifMatch(text, allows: etag)
    let isNamed = EntityTags.ifNoneMatch(text, names: etag)
    let isBare = text.utf8.allSatisfy { [0x2A, 0x20, 0x09, 0x2C].contains($0) }
    require(!matches || text.contains(etag) || isBare, "only the tag itself or a star matches")
    require(!matches || isNamed, "what matches strongly matches weakly")
    require(!EntityTags.ifRange(text, names: etag) || matches, "If-Range holds no more")
    require(
        !EntityTags.ifMatch("W/" + etag + "," + text, allows: etag) || text.contains(etag),
        "a weak tag never matches strongly")
    let tags = EntityTags.list(text)
    require(tags.allSatisfy { !$0.isEmpty }, "a list has no empty tags")
    guard text.utf8.allSatisfy({ $0 < 0x80 && $0 != 0x0D }) else { return }
    require(EntityTags.list(tags.joined(separator: ", ")) == tags, "what is written reads back")
}

private func checkContentDisposition(_ text: String) {
    let names = [text, ContentDisposition.fileName(in: text)]
    for name in names.compactMap({ $0 }) {
        let written = ContentDisposition.attachment(name)
        require(isHeaderText(written), "a header value is plain text")
        guard let read = ContentDisposition.fileName(in: written) else {
            fatalError("what is written reads back: \(written)")
        }
        requireSame(read, name, "what is written reads back")
    }
}

private func checkMigrationName(_ text: String) {
    guard let name = MigrationName(text) else { return }
    let digits = String(name.number)
    let number = String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    requireSame("\(number)_\(name.name).sql", text, "number and words make the name")
    require(isHeaderText(text) && !text.utf8.contains(0x2F), "a name is plain and no path")
    // The order is irrelevant for this check: a number that occurs twice never passes.
    require((try? MigrationName.ordered([text, text])) == nil, "a number is there once")
}

/// Replaces the type beside the embedder's `main`, which cannot be linked here: libFuzzer has its
/// own `main`.
struct EmbeddingError: Error {
    let message: String
}
