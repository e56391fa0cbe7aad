internal import KedgeModel

/// A failed command: its message and exit status.
struct CommandFailure: Error {
    let message: String?
    let exitStatus: Int32

    /// The message without the name of the command.
    var reason: String? {
        guard let message, message.hasPrefix("kedge: ") else { return message }
        return String(message.dropFirst("kedge: ".count))
    }

    init(_ message: String?, exitStatus: Int32 = ExitStatus.failure) {
        self.message = message
        self.exitStatus = exitStatus
    }
}
