/// Options of the command line.
struct Settings: Sendable {
    /// The path of the measured binary.
    let kedge: String
    /// The path of rclone; nil when there is none.
    let rclone: String?
    /// The directory of the scripts that measure links; nil when there is none.
    let linkScripts: String?
    /// The directory of the scripts that issue tokens and hold connections; nil when there is none.
    let identityScripts: String?
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
