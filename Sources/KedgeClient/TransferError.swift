public import KedgeModel

/// An error of the transfer client.
///
/// Two errors are equal when their codes are. ``description`` is safe to show to anybody; the rest is
/// for the log.
public struct TransferError: Error, Sendable {
    /// The row of the error table.
    public let code: ErrorCode
    /// What was being done, for example `finalize`.
    public let operation: String
    /// What it was done to: a transfer id, a path or a URL. For the log only.
    public let resource: String?
    /// The error behind this one. For the log only.
    public let cause: (any Error)?
    /// Words that replace the table's sentence where more is known; safe for strangers.
    public let explanation: String?

    /// Makes an error.
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

extension TransferError {
    /// True when the same can succeed later without anybody changing anything: that depends on what is
    /// behind the code, too. What was found on this side no waiting cures.
    public var isRetryable: Bool { (cause as? RequestFailure)?.isRetryable ?? false }
}

extension TransferError: Equatable {
    /// Compares the codes only.
    public static func == (left: TransferError, right: TransferError) -> Bool {
        left.code == right.code
    }
}

extension TransferError: CustomStringConvertible, CustomDebugStringConvertible {
    /// Code and sentence, safe for strangers.
    public var description: String { "\(code.rawValue): \(explanation ?? code.facts.sentence)" }

    /// Everything that is known, for the log.
    public var debugDescription: String {
        let resourceText = resource.map { " of \($0)" } ?? ""
        let causeText = cause.map { ", cause: \(String(reflecting: $0))" } ?? ""
        return "\(description) (\(operation)\(resourceText)\(causeText))"
    }
}
