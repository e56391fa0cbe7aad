/// What the command line asked for.
struct Settings: Sendable {
    /// The binary that is measured.
    let kedge: String
    /// rclone, or nil when there is none.
    let rclone: String?
    let scale: Scale
    let isSmoke: Bool

    var description: String {
        """
        \(isSmoke ? "Smoke" : "Full"): \(scale.runs) runs, raw transfers of \
        \(scale.rawByteCount >> 20) MiB, the command's of \(scale.commandByteCount >> 20) MiB, \
        chunks of \(scale.chunkByteCount >> 10) KiB.
        """
    }
}
