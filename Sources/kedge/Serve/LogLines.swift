internal import Foundation
internal import KedgeModel
internal import KedgeServer
internal import Logging

/// Writes one line per entry, by default to standard error: text for people, or a JSON object for
/// programs.
struct LogLines: LogHandler {
    var logLevel: Logger.Level
    var metadata: Logger.Metadata = [:]
    private let label: String
    private let format: LogFormat
    private let write: @Sendable (String) -> Void

    /// - Parameter write: Writes one line.
    init(
        label: String, format: LogFormat, level: Logger.Level,
        write: @escaping @Sendable (String) -> Void = { StandardError.write($0) }
    ) {
        self.label = label
        self.format = format
        self.write = write
        logLevel = level
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let all = metadata.merging(event.metadata ?? [:]) { _, new in new }
        let time = Timestamp(
            millisecondsSinceEpoch: Int64(Date().timeIntervalSince1970 * 1000)
        ).description
        switch format {
        case .text:
            let facts = all.sorted { $0.key < $1.key }.map {
                " \(ControlCharacters.escaped($0.key))=\(Self.plain("\($0.value)"))"
            }
            let message = ControlCharacters.escaped(event.message.description)
            write("\(time) \(event.level) \(message)\(facts.joined())\n")
        case .json:
            var object = all.mapValues { "\($0)" }
            object["time"] = time
            object["level"] = event.level.rawValue
            object["message"] = event.message.description
            object["logger"] = label
            write(JSONLine.encode(object))
        }
    }

    /// Returns the text, quoted if it could be read as several values. Control characters are
    /// escaped, because untrusted text could otherwise forge log lines.
    private static func plain(_ text: String) -> String {
        let isOdd = text.unicodeScalars.contains {
            $0 == " " || $0 == "\"" || ControlCharacters.steers($0)
        }
        return isOdd ? ControlCharacters.escaped(String(reflecting: text)) : text
    }
}
