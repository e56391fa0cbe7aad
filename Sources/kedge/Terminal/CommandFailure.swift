internal import KedgeModel

/// A failed command: its message and exit status.
struct CommandFailure: Error {
    let message: String?
    let exitStatus: Int32

    init(_ message: String?, exitStatus: Int32 = ExitStatus.failure) {
        self.message = message
        self.exitStatus = exitStatus
    }
}
