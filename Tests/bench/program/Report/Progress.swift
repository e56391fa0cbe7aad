internal import Foundation

/// Talk for whoever waits; the table alone goes to standard output.
enum Progress {
    static func tell(_ text: String) {
        FileHandle.standardError.write(Data("bench: \(text)\n".utf8))
    }
}
