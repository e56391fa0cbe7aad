/// Errors as text for the log, without names of Swift's types: operators do not know them.
package enum CauseText {
    /// Returns the error's own text for a log, or else its case or its values.
    package static func of(_ error: any Error) -> String {
        if let error = error as? any CustomDebugStringConvertible { return error.debugDescription }
        if let error = error as? any CustomStringConvertible { return error.description }
        let text = String(describing: error)
        // Swift writes a case by its name, and any other value as its type with the values.
        guard text.first?.isUppercase ?? false else { return text }
        let values = text.drop { $0 != "(" }.dropFirst().dropLast()
        return values.isEmpty ? text : String(values)
    }
}
