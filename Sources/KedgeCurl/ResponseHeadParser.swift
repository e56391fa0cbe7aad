package import HTTPTypes

/// Builds a response head from the lines libcurl reports, one call per line.
///
/// libcurl reports every header block of an exchange: interim responses (RFC 9110, section 15.2),
/// then the final one, then trailers. Only the final block counts.
package struct ResponseHeadParser {
    package enum Event {
        case incomplete
        case complete(HTTPResponse)
        case tooLarge
        case malformed
    }

    private enum Phase {
        case statusLine
        case fields
        case done
    }

    private let maxByteCount: Int
    private var byteCount = 0
    private var phase = Phase.statusLine
    private var head = HTTPResponse(status: .ok)

    package init(maxByteCount: Int) {
        self.maxByteCount = maxByteCount
    }

    /// Consumes one line, with or without its line break.
    package mutating func consume(_ line: [UInt8]) -> Event {
        if phase == .done { return .incomplete }
        // Never reset, so that endless interim responses are bounded as well.
        byteCount += line.count
        guard byteCount <= maxByteCount else { return .tooLarge }

        let text = Self.trimmed(line[...])
        switch phase {
        case .statusLine:
            guard let status = Self.status(of: text) else { return .malformed }
            head = HTTPResponse(status: status)
            phase = .fields
        case .fields where text.isEmpty:
            if head.status.kind == .informational {
                phase = .statusLine
            } else {
                phase = .done
                return hasLength ? .complete(head) : .malformed
            }
        case .fields:
            appendField(text)
        case .done:
            break
        }
        return .incomplete
    }

    /// Whether `Content-Length` is absent or one valid number, possibly repeated. RFC 9112 section
    /// 6.3 has a client discard any other response; libcurl would take the first digits or the last
    /// field.
    private var hasLength: Bool {
        let values = head.headerFields[values: .contentLength]
        guard let first = values.first else { return true }
        return values.allSatisfy { $0 == first } && !first.isEmpty
            && first.utf8.allSatisfy { (0x30...0x39).contains($0) } && Int64(first) != nil
    }

    /// Adds a field. A malformed line, such as one with a space in its name, is dropped: libcurl
    /// has already framed the message, so this leniency cannot move its end.
    private mutating func appendField(_ line: ArraySlice<UInt8>) {
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")),
            let name = HTTPField.Name(String(decoding: line[..<colon], as: UTF8.self))
        else { return }
        let value = Self.trimmed(line[line.index(after: colon)...])
        head.headerFields.append(HTTPField(name: name, lenientValue: value))
    }

    /// Reads `HTTP/1.1 200 OK`; the reason may be missing.
    private static func status(of line: ArraySlice<UInt8>) -> HTTPResponse.Status? {
        let parts = line.split(
            separator: UInt8(ascii: " "), maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count >= 2, parts[0].starts(with: "HTTP/".utf8), parts[1].count == 3,
            let code = Int(String(decoding: parts[1], as: UTF8.self)), (100...999).contains(code)
        else { return nil }
        let reason = parts.count > 2 ? String(decoding: parts[2], as: UTF8.self) : ""
        return HTTPResponse.Status(code: code, reasonPhrase: reason)
    }

    /// Removes spaces, tabs and line breaks at both ends.
    private static func trimmed(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var text = text
        while let last = text.last, isBlank(last) { text.removeLast() }
        while let first = text.first, isBlank(first) { text.removeFirst() }
        return text
    }

    private static func isBlank(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") || byte == UInt8(ascii: "\r")
            || byte == UInt8(ascii: "\n")
    }
}
