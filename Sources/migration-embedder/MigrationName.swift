/// The name of a migration's file: four digits, an underscore, words, `.sql`.
struct MigrationName {
    let number: Int
    let name: String
    let fileName: String

    /// Parses a file name; nil when it has another form.
    init?(_ fileName: String) {
        let bytes = Array(fileName.utf8)
        let suffix = Array(".sql".utf8)
        guard bytes.count > 5 + suffix.count, bytes.suffix(suffix.count).elementsEqual(suffix),
            bytes[4] == UInt8(ascii: "_")
        else { return nil }
        let digits = bytes[..<4]
        let words = bytes[5..<bytes.count - suffix.count]
        guard digits.allSatisfy(Self.isDigit),
            words.allSatisfy({ Self.isDigit($0) || Self.isLowerCase($0) || $0 == UInt8(ascii: "_") }
            )
        else { return nil }
        number = digits.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
        name = String(decoding: words, as: UTF8.self)
        self.fileName = fileName
    }

    /// Returns the migrations in order.
    ///
    /// - Throws: An error when a name has another form, or the numbers are not 1, 2, 3 and so on. A
    ///   merge of two branches can leave a gap or a duplicate.
    static func ordered(_ fileNames: [String]) throws(EmbeddingError) -> [MigrationName] {
        var names: [MigrationName] = []
        for fileName in fileNames.sorted() {
            guard let name = MigrationName(fileName) else {
                throw EmbeddingError(message: "\(fileName) is not named like 0001_some_words.sql")
            }
            if let last = names.last, last.number == name.number {
                throw EmbeddingError(
                    message: "\(last.fileName) and \(fileName) have the same number")
            }
            guard name.number == names.count + 1 else {
                throw EmbeddingError(
                    message: "\(fileName) follows number \(names.count): numbers have a gap")
            }
            names.append(name)
        }
        guard !names.isEmpty else { throw EmbeddingError(message: "there are no migrations") }
        return names
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
    }

    private static func isLowerCase(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
    }
}
