internal import Foundation

/// Progress messages on standard error; the table alone goes to standard output.
enum Progress {
    static func tell(_ text: String) {
        FileHandle.standardError.write(Data("bench: \(text)\n".utf8))
    }
}
