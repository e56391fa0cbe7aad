internal import Foundation
internal import KedgeModel
internal import Yams

/// The configuration file as text. Reports mistakes in one line, and quotes values so that they can
/// be read back.
enum ConfigurationFile {
    /// - Throws: ``ConfigurationError``.
    static func text(at path: String) throws -> String {
        let bytes: Data
        do {
            bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        } catch {
            throw ConfigurationError(
                "The configuration file \(oneLine(path)) cannot be read: \(reason(error)).")
        }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw ConfigurationError("The configuration file \(oneLine(path)) is not UTF-8.")
        }
        return text
    }

    /// The error for malformed YAML, with the line if the parser knows it.
    static func mistake(in path: String, _ error: any Error) -> ConfigurationError {
        let what: String
        switch error {
        case let error as YamlError:
            what =
                switch error {
                case .scanner(_, let problem, let mark, _), .parser(_, let problem, let mark, _),
                    .composer(_, let problem, let mark, _):
                    "line \(mark.line): \(problem)"
                default: "\(error)"
                }
        default: what = "\(error)"
        }
        return ConfigurationError(
            "The configuration file \(oneLine(path)) is not a mapping of settings: "
                + oneLine(what))
    }

    /// A scalar in double quotes (YAML 1.2 section 5.7), with invisible characters escaped.
    static func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\": result += "\\\(scalar)"
            case "\n": result += "\\n"
            case "\t": result += "\\t"
            case _ where isInvisible(scalar): result += escaped(scalar)
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }

    private static func isInvisible(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .surrogate,
            .unassigned:
            true
        default: false
        }
    }

    private static func escaped(_ scalar: Unicode.Scalar) -> String {
        let value = scalar.value
        let bytes = [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> $0) }
        return "\\U" + Hex.encode(bytes)
    }

    private static func reason(_ error: any Error) -> String {
        switch (error as? CocoaError)?.code {
        case .fileReadNoSuchFile, .fileNoSuchFile: "no such file"
        case .fileReadNoPermission: "permission denied"
        default: "not a readable file"
        }
    }

    /// The text on one line: spaces replace line breaks.
    static func oneLine(_ text: String) -> String {
        text.split(whereSeparator: \.isNewline).joined(separator: " ")
    }
}
