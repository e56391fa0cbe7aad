internal import HTTPTypes
internal import KedgeModel

let clientTargets = [
    FuzzTarget(name: "response-head") { checkResponseHead($0) },
    FuzzTarget(name: "url") { checkURL($0.text) },
    FuzzTarget(name: "redirect") { checkRedirect($0.text) },
]

private let lineFeed = UInt8(ascii: "\n")

private func checkResponseHead(_ bytes: [UInt8]) {
    let maxByteCount = 4096
    var parser = ResponseHeadParser(maxByteCount: maxByteCount)
    var fedByteCount = 0
    for line in bytes.split(separator: lineFeed, omittingEmptySubsequences: false) {
        fedByteCount += line.count + 1
        switch parser.consume(line + [lineFeed]) {
        case .incomplete:
            require(fedByteCount <= maxByteCount, "an endless head is cut")
        case .complete(let head):
            require(fedByteCount <= maxByteCount, "an endless head is cut")
            checkHead(head)
            return
        case .tooLarge, .malformed:
            return
        }
    }
}

private func checkHead(_ head: HTTPResponse) {
    require(head.status.kind != .informational, "an interim answer is none")
    require((100...999).contains(head.status.code), "a status has three digits")
    for field in head.headerFields {
        require(
            field.value.utf8.allSatisfy { $0 != 0 && $0 != 10 && $0 != 13 },
            "the value of a field is one line")
        require(field.name.rawName.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }, "a name is a token")
    }
    let versions: [RangeValidator] = [
        .tag("\"0123abcd\""), .date("Sun, 06 Nov 1994 08:49:37 GMT"), .weak("W/\"0123abcd\""),
        .weak(""),
    ]
    for version in versions {
        checkAcceptance(on: head, version)
    }
    let named = RangeValidator(head.headerFields)
    require(
        named == .weak("") || named.comparison(with: head.headerFields) == .same,
        "an answer is of the version that it names")
}

private func checkAcceptance(on head: HTTPResponse, _ version: RangeValidator) {
    let check = RangeResponseCheck(
        status: head.status.code, fields: head.headerFields, asked: ByteRange(start: 4, end: 8),
        total: 16, validator: version)
    guard check == .accepted else { return }
    require(head.status == .partialContent, "only a 206 carries a range")
    let numbers = (head.headerFields[.contentRange] ?? "").split { !$0.isASCII || !$0.isNumber }
        .map { WireInteger.parse($0) }
    require(numbers == [4, 7, 16], "the range is the one asked for: \(numbers)")
    switch version {
    case .tag(let text):
        require(head.headerFields[.eTag] == text, "the version is the one asked for")
    case .date(let text):
        require((head.headerFields[.lastModified] ?? text) == text, "no other date")
    case .weak:
        break
    }
}

private func checkURL(_ text: String) {
    let escaped = URLText.escapeQuery(text)
    require(isHeaderText(escaped) && !escaped.contains("&"), "a query value stays one value")
    if let name = URLText.lastPathComponent(of: text) {
        require(FileName.isValid(FileName.sanitized(name)), "a name can be made of it")
    }
    guard let origin = URLText.origin(of: text) else {
        require(URLText.normalizedBase(text) == nil, "a base is http or https with a host")
        return
    }
    checkConnection(text, origin)
    require(URLText.origin(of: origin) == origin, "\(origin) has itself for an origin")
    guard let base = URLText.normalizedBase(text) else { fatalError("an origin makes a base") }
    require(!base.hasSuffix("/"), "a base ends before the slash")
    require(URLText.origin(of: base) == origin, "\(text): a base keeps its origin")
}

/// - Parameter text: The `Location` of a redirect.
private func checkRedirect(_ text: String) {
    guard let target = URLText.resolve(text, against: "http://kedge.test:8080/files/a?b") else {
        return
    }
    guard let origin = URLText.origin(of: target) else { fatalError("a target has an origin") }
    checkConnection(target, origin)
}

/// Checks that two URLs of one origin lead to one place: ``URLText`` finds the origin that a token
/// is for, and libcurl's own parser decides where the request goes.
private func checkConnection(_ url: String, _ origin: String) {
    // libcurl encodes a host of other letters when it connects, and the host of a redirect before
    // that.
    guard let connection = URLOrigin(url), isHeaderText(connection.host) else { return }
    guard let expected = URLOrigin(origin) else {
        fatalError("libcurl takes \(String(reflecting: url)), but not \(origin)")
    }
    require(
        connection == expected,
        "\(String(reflecting: url)) leads to \(connection), its origin to \(expected)")
}
