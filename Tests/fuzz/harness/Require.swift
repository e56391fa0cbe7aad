/// Stops the fuzzer when a property does not hold; libFuzzer keeps the failing input.
func require(
    _ holds: Bool, _ sentence: @autoclosure () -> String, file: StaticString = #fileID,
    line: UInt = #line
) {
    guard holds else { fatalError(sentence(), file: file, line: line) }
}

/// Requires equal bytes: `==` on strings is true for different bytes of the same text (canonical
/// equivalence).
func requireSame(
    _ left: String, _ right: String, _ sentence: String, file: StaticString = #fileID,
    line: UInt = #line
) {
    require(
        left.utf8.elementsEqual(right.utf8),
        "\(sentence): \(String(reflecting: left)) and \(String(reflecting: right))",
        file: file, line: line)
}

/// Whether the text can stand in a header field: visible ASCII and spaces.
func isHeaderText(_ text: String) -> Bool { text.utf8.allSatisfy { (0x20...0x7E).contains($0) } }

extension [UInt8] {
    /// The input as text; bytes that are not UTF-8 become replacement characters, as in the
    /// service.
    var text: String { String(decoding: self, as: UTF8.self) }

    /// The first eight bytes as a number, missing ones as zeros.
    var number: Int64 {
        Int64(bitPattern: prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
    }
}
