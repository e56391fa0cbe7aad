internal import KedgeModel

let modelTargets = [
    FuzzTarget(name: "content-range") { checkContentRange($0.text) },
    FuzzTarget(name: "digest") { checkDigests($0) },
    FuzzTarget(name: "file-name") { checkFileName($0.text) },
    FuzzTarget(name: "chunk-set") { checkChunkSet($0) },
    FuzzTarget(name: "chunk-layout") { checkChunkLayout($0.text) },
    FuzzTarget(name: "timestamp") { checkTimestamp($0) },
    FuzzTarget(name: "number") { checkNumbers($0.text) },
    FuzzTarget(name: "structured-field") { checkStructuredField($0.text) },
]

private func checkContentRange(_ text: String) {
    guard let value = ContentRange(text) else { return }
    if let range = value.range {
        require(!range.isEmpty, "a range that was read has bytes")
        require(range.end <= value.total ?? .max, "a range lies within the total")
    } else {
        require(value.total != nil, "without a range there is a total")
    }
    require(isHeaderText(value.description), "a header value is plain text")
    require(ContentRange(value.description) == value, "what is written reads back")
}

private func checkDigests(_ bytes: [UInt8]) {
    let text = bytes.text
    requireSame(Base64.decode(text).map(Base64.encode) ?? text, text, "one value has one base64")
    require(Base64.decode(Base64.encode(bytes)) == bytes, "base64 reads back")
    require(Hex.decode(Hex.encode(bytes)) == bytes, "hexadecimal text reads back")
    if let decoded = Hex.decode(text) {
        requireSame(Hex.encode(decoded), text.lowercased(), "hexadecimal text means its bytes")
    }
    let digests = [
        DigestHeader.parseChunkHash(text), DigestHeader.parseRFC9530(text), SHA256Digest(hex: text),
        SHA256Digest(bytes: bytes.prefix(32)),
    ]
    for digest in digests.compactMap({ $0 }) {
        let (hash, field) = (DigestHeader.chunkHash(digest), DigestHeader.rfc9530(digest))
        require(isHeaderText(hash) && isHeaderText(field), "a header value is plain text")
        require(DigestHeader.parseChunkHash(hash) == digest, "X-Chunk-Hash reads back")
        require(DigestHeader.parseRFC9530(field) == digest, "Content-Digest reads back")
        require(SHA256Digest(bytes: digest.bytes) == digest, "the bytes read back")
    }
}

private func checkFileName(_ text: String) {
    let made = FileName.sanitized(text)
    require(FileName.isValid(made), "a made name is valid: \(String(reflecting: made))")
    requireSame(FileName.sanitized(made), made, "a made name stays as it is")
    if FileName.isValid(text) { requireSame(made, text, "a valid name stays as it is") }
    // States the rules independently of the code, so that a mistake there is noticed.
    require((1...255).contains(made.utf8.count), "a name fits every file system")
    require(![".", ".."].contains(made), "a name is no way up")
    require(
        made.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x2F && $0 != 0x5C && $0 != 0x7F },
        "a name has no separators and no control characters")
}

private func checkChunkSet(_ bytes: [UInt8]) {
    guard let set = ChunkSet(serialized: bytes) else {
        require(bytes.count > ChunkLayout.maxChunkCount / 8, "only too many bytes are refused")
        return
    }
    var stored = bytes
    while stored.last == 0 { stored.removeLast() }
    require(set.serialized == stored, "the bytes read back")
    let indexes = set.indexes
    require(indexes.count == set.count, "the count is that of the indexes")
    require(zip(indexes, indexes.dropFirst()).allSatisfy { $0 < $1 }, "the indexes rise")
    require(ChunkSet(indexes) == set, "the indexes make the same set")
    require(!set.contains(set.contiguousCount), "contiguous progress ends at the first gap")
    let chunkCount = bytes.count * 8
    let parts = set.ranges + set.missingRanges(of: chunkCount)
    require(parts.map(\.count).reduce(0, +) == chunkCount, "there or missing, never both")
    require(parts.allSatisfy { $0.upperBound < chunkCount }, "no run goes beyond the end")
}

/// - Parameter text: Size of the file, size of a chunk and an index or offset, between spaces.
private func checkChunkLayout(_ text: String) {
    let numbers = text.split(separator: " ").compactMap { WireInteger.parse($0) }
    guard numbers.count == 3, numbers[1] > 0 else { return }
    let (fileSize, offset) = (numbers[0], numbers[2])
    let fitting = ChunkLayout.chunkSize(preferred: numbers[1], forFileOf: fileSize)
    require(fitting >= numbers[1], "a fitting chunk size is no smaller than the preferred one")
    for chunkSize in [numbers[1], fitting] {
        let layout = ChunkLayout(fileSize: fileSize, chunkSize: chunkSize)
        guard let count = layout.chunkCount else { fatalError("a size gives a count") }
        require((count == 0) == (fileSize == 0), "only an empty file has no chunks")
        require(chunkSize == numbers[1] || count <= ChunkLayout.maxChunkCount, "the count fits")
        for index in [Int(offset), count - 1, count] {
            let range = layout.range(ofChunk: index)
            require((range != nil) == (0..<count).contains(index), "a chunk below the count exists")
            require(range.map { !$0.isEmpty && $0.end <= fileSize } ?? true, "it lies in the file")
        }
        guard offset < fileSize, let range = layout.range(ofChunk: layout.index(ofByteAt: offset))
        else { continue }
        require((range.start..<range.end).contains(offset), "a byte lies in its chunk")
    }
    _ = ChunkLayout(fileSize: nil, chunkSize: numbers[1]).range(ofChunk: Int(offset))
}

private func checkTimestamp(_ bytes: [UInt8]) {
    if let time = Timestamp(bytes.text) {
        require(Timestamp(time.description) == time, "\(time) reads back")
        require(time.description.utf8.count == 24, "a time has one form")
        _ = time.duration(since: Timestamp(millisecondsSinceEpoch: .max / 2))
    }
    if let time = Timestamp(httpDate: bytes.text) {
        require(bytes.count == 29, "an HTTP date has one form")
        require(Timestamp(time.description) == time, "\(time) reads back")
    }
    // A store may hold any number, and the cursor of a list contains one.
    let time = Timestamp(millisecondsSinceEpoch: bytes.number)
    require(isHeaderText(time.description), "a time is plain text")
    let later = time.advanced(by: .seconds(bytes.dropFirst(8).reduce(0) { $0 << 8 | Int64($1) }))
    require(later.millisecondsSinceEpoch != .max, "far times have room for arithmetic")
}

private func checkNumbers(_ text: String) {
    if let value = WireInteger.parse(text) {
        require(value >= 0, "a number of the wire is not negative")
        let plain = text.drop { $0 == "0" }
        requireSame(String(value), plain.isEmpty ? "0" : String(plain), "a number means its digits")
    }
    if let id = FileID(text) {
        requireSame(id.text, text, "an identifier is its text")
        require(id.text.utf8.count == 32 && Hex.decode(text) != nil, "it has 32 digits")
    }
}

private func checkStructuredField(_ text: String) {
    if let count = StructuredField.count(text) {
        require((0...999_999_999_999_999).contains(count), "a count has at most 15 digits")
        require(StructuredField.item(text) == .integer(count), "a count is an item")
    }
    if let item = StructuredField.item(text) {
        let lenient = StructuredField.item(text, acceptsEveryType: true)
        require(lenient == item, "a reader of every type reads the same item")
    }
    if let members = StructuredField.dictionary(text) {
        let lenient = StructuredField.dictionary(text, acceptsEveryType: true)
        require(lenient == members, "a reader of every type reads the same members")
        require(!members.values.contains(.other), "a strict reader has no other types")
    }
}
