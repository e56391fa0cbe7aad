public import KedgeModel

/// An error of the transfer client.
///
/// Errors are equal if their codes are. ``description`` is safe to show to users; the other details
/// are for the log.
public struct TransferError: Error, Sendable {
    /// Code in the error table.
    public let code: ErrorCode
    /// Operation that failed, for example `finalize`.
    public let operation: String
    /// Object of the operation: a transfer id, a path or a URL. For the log only.
    public let resource: String?
    /// Underlying error. For the log only.
    public let cause: (any Error)?
    /// Sentence that replaces the table's where more is known. Safe to show to users.
    public let explanation: String?

    /// Creates an error.
    public init(
        _ code: ErrorCode, operation: String, resource: String? = nil, explanation: String? = nil,
        cause: (any Error)? = nil
    ) {
        self.code = code
        self.operation = operation
        self.resource = resource
        self.explanation = explanation
        self.cause = cause
    }
}

extension TransferError: Equatable {
    /// Compares the codes only.
    public static func == (left: TransferError, right: TransferError) -> Bool {
        left.code == right.code
    }
}

extension TransferError: CustomStringConvertible, CustomDebugStringConvertible {
    /// Code and sentence, safe to show to users.
    public var description: String { "\(code.rawValue): \(explanation ?? code.facts.sentence)" }

    /// All details, for the log.
    public var debugDescription: String {
        let resourceText = resource.map { " of \($0)" } ?? ""
        let causeText = cause.map { ", cause: \(String(reflecting: $0))" } ?? ""
        return "\(description) (\(operation)\(resourceText)\(causeText))"
    }
}
