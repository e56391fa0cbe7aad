internal import ArgumentParser
internal import KedgeClient
internal import KedgeContainers
internal import KedgeModel

/// What to do about a file whose own structure says that it is incomplete (R21).
enum ContainerChecking: String, ExpressibleByArgument, CaseIterable {
    /// Nothing is looked at.
    case off
    /// The person is told, and the transfer goes on.
    case warn
    /// The file is not uploaded.
    case refuse

    static let help: ArgumentHelp = """
        Whether to look if JPEG, PNG, PDF and MP4 files are complete.
        """

    /// Looks at a file that is to be uploaded.
    ///
    /// - Throws: `FILE_TRUNCATED` when it is to be refused.
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

    /// Looks at a file that was downloaded. It is what the server has, so there is only a warning.
    func checkResult(
        _ snapshot: TransferSnapshot, _ client: TransferClient, _ display: ProgressDisplay
    ) async throws {
        guard self != .off, snapshot.state == .completed,
            let complaint = try await client.checkContainer(ofFileAt: snapshot.path).complaint
        else { return }
        display.warn(snapshot.path, complaint)
    }
}
