internal import KedgeModel
internal import KedgeTransport
internal import Logging

extension RequestFailure: CustomStringConvertible, CustomDebugStringConvertible {
    /// Code and message, safe for strangers.
    package var description: String { "\(code.rawValue): \(message)" }

    /// The facts for the log as plain text.
    package var debugDescription: String {
        let facts = logFields.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
        return "\(description) (\(facts.joined(separator: " ")))"
    }

    /// The facts for the log, without secrets. Fields without a value are left out.
    var logFields: Logger.Metadata {
        let connection = transport?.connection
        let cause = connection.map(\.cause.rawValue) ?? transport?.kind.rawValue
        let fields: [(String, String?)] = [
            ("code", code.rawValue), ("operation", operation),
            ("status", answer.map { "\($0.status)" }),
            ("host", connection.map { "\($0.host):\($0.port)" } ?? answer?.hostAndPort),
            ("cause", cause), ("request.id", answer?.requestID),
            ("attempt", attempt > 1 ? "\(attempt)" : nil),
        ]
        return Logger.Metadata(
            uniqueKeysWithValues: fields.compactMap { name, value in
                value.map { (name, Logger.MetadataValue.string($0)) }
            })
    }
}

/// Returns the facts of any error for the log: fields of their own for a failed request.
func logFields(of error: any Error) -> Logger.Metadata {
    switch error {
    case let failure as RequestFailure:
        return failure.logFields.merging(["message": "\(failure.message)"]) { $1 }
    case let error as TransferError:
        var fields = error.cause.map { logFields(of: $0) } ?? [:]
        fields["code"] = "\(error.code.rawValue)"
        fields["operation"] = "\(error.operation)"
        fields["message"] = "\(error.explanation ?? error.code.facts.sentence)"
        if let resource = error.resource { fields["resource"] = "\(resource)" }
        return fields
    default:
        return ["error": "\(String(reflecting: error))"]
    }
}
