internal import KedgeModel

let commandTargets = [FuzzTarget(name: "terminal") { checkTerminalText($0.text) }]

private func checkTerminalText(_ text: String) {
    for shown in [printable(text), ShellText.quoted(text)] {
        require(
            !shown.unicodeScalars.contains(where: ControlCharacters.steers),
            "a terminal obeys nothing")
    }
    requireSame(printable(printable(text)), printable(text), "what is hidden stays hidden")
    let kept = printable(text, keepsLines: true).unicodeScalars
    require(
        !kept.contains { ControlCharacters.steers($0) && $0 != "\n" && $0 != "\t" },
        "a terminal obeys no more")
    let secret = "0secret0"
    require(
        !printable("http://name:\(secret)@\(text)").contains(secret), "a password is hidden")
    if !text.unicodeScalars.contains(where: {
        $0.properties.isWhitespace || "\"'<>".unicodeScalars.contains($0)
    }) {
        require(!printable("http://host/?\(text)\(secret)").contains(secret), "a query is hidden")
    }
    // An argument of a process cannot contain NUL.
    guard !text.utf8.contains(0) else { return }
    let word = ShellText.quoted(text)
    require(shellWord(word).map { $0 == Array(text.utf8) } ?? false, "a shell reads \(word) back")
}

/// The bytes that a shell makes of a word; nil when it would see more than one plain word.
private func shellWord(_ word: String) -> [UInt8]? {
    var rest = Array(word.utf8)[...]
    var result: [UInt8] = []
    if rest.starts(with: "$'".utf8) { return dollarQuoted(rest.dropFirst(2)) }
    guard !rest.isEmpty else { return nil }
    while let byte = rest.popFirst() {
        switch byte {
        case UInt8(ascii: "'"):
            guard let end = rest.firstIndex(of: byte) else { return nil }
            result += rest[..<end]
            rest = rest[(end + 1)...]
        case UInt8(ascii: "\\"):
            guard let next = rest.popFirst() else { return nil }
            result.append(next)
        case _ where "-_./:=,@%+".utf8.contains(byte) || isLetterOrDigit(byte):
            result.append(byte)
        default:
            return nil
        }
    }
    return result
}

private func dollarQuoted(_ quoted: ArraySlice<UInt8>) -> [UInt8]? {
    var rest = quoted
    var result: [UInt8] = []
    while let byte = rest.popFirst() {
        if byte == UInt8(ascii: "'") { return rest.isEmpty ? result : nil }
        guard byte == UInt8(ascii: "\\") else {
            result.append(byte)
            continue
        }
        guard let next = rest.popFirst() else { return nil }
        switch next {
        case UInt8(ascii: "n"): result.append(0x0A)
        case UInt8(ascii: "t"): result.append(0x09)
        case UInt8(ascii: "'"), UInt8(ascii: "\\"): result.append(next)
        default:
            let digits = [next] + rest.prefix(2)
            guard digits.count == 3,
                let value = UInt8(String(decoding: digits, as: UTF8.self), radix: 8)
            else { return nil }
            result.append(value)
            rest = rest.dropFirst(2)
        }
    }
    return nil
}

private func isLetterOrDigit(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
    default: false
    }
}
