/// The generated Swift file.
enum SwiftSource {
    static func text(of migrations: [(name: MigrationName, sql: String)]) throws(EmbeddingError)
        -> String
    {
        var text = """
            // Made by migration-embedder; changes here are lost.

            /// The numbered migrations, in order.
            package enum EmbeddedMigrations {
                package static let all: [(number: Int, name: String, sql: String)] = [

            """
        for (name, sql) in migrations {
            // The compiler would turn CR LF into LF, and the fingerprint would no longer match the
            // file.
            guard !sql.utf8.contains(0x0D), !sql.utf8.contains(0) else {
                throw EmbeddingError(
                    message: "\(name.fileName) contains a carriage return or a zero byte")
            }
            let fence = String(repeating: "#", count: longestFence(in: sql) + 1)
            text += "        (\n            number: \(name.number), name: \"\(name.name)\",\n"
            text += "            sql: \(fence)\"\"\"\n\(sql)\n\"\"\"\(fence)),\n"
        }
        return text + "    ]\n}\n"
    }

    static func text(ofContract contract: String) -> String {
        let fence = String(repeating: "#", count: longestFence(in: contract) + 1)
        return """
            // Made by migration-embedder; changes here are lost.

            /// The contract of the service, `openapi/kedge.yaml`.
            enum EmbeddedContract {
                static let text = \(fence)\"\"\"

            """ + contract + "\n\"\"\"\(fence)\n}\n"
    }

    /// Returns the length of the longest run of `#`. A delimiter with one more cannot occur in the
    /// text.
    private static func longestFence(in sql: String) -> Int {
        var longest = 0
        var current = 0
        for byte in sql.utf8 {
            current = byte == UInt8(ascii: "#") ? current + 1 : 0
            longest = max(longest, current)
        }
        return longest
    }
}
