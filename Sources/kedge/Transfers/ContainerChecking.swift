internal import ArgumentParser
internal import KedgeClient
internal import KedgeContainers
internal import KedgeModel

/// The action for a file whose own structure shows that it is incomplete.
enum ContainerChecking: String, ExpressibleByArgument, CaseIterable {
    /// Checks nothing.
    case off
    /// Warns the user; the transfer continues.
    case warn
    /// Refuses the upload.
    case refuse

    static let help: ArgumentHelp = """
        Check whether JPEG, PNG, PDF and MP4 files are complete.
        """

    /// Checks a file before its upload.
    ///
    /// - Throws: `FILE_TRUNCATED` if the file is refused.
    func checkSource(
        _ path: String, _ client: TransferClient, _ display: ProgressDisplay
    ) async throws {
        guard self != .off,
            let complaint = try await client.checkContainer(ofFileAt: path).complaint
        else { return }
        guard self == .warn else {
            throw TransferError(
                .fileTruncated, operation: "check container", resource: path,
                explanation: "\(complaint) Nothing of it was sent.")
        }
        display.warn(path, complaint)
    }

    /// Checks a downloaded file. It is a copy of the server's file, so there is only a warning.
    func checkResult(
        _ snapshot: TransferSnapshot, _ client: TransferClient, _ display: ProgressDisplay
    ) async throws {
        guard self != .off, snapshot.state == .completed,
            let complaint = try await client.checkContainer(ofFileAt: snapshot.path).complaint
        else { return }
        display.warn(snapshot.path, complaint)
    }
}
