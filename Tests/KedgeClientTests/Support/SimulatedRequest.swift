import KedgeClient
import KedgeModel

/// A command of a user, who repeats it after a failure.
enum SimulatedRequest: Sendable {
    case download(RemoteReference, overwrites: Bool)
    case upload

    var isUpload: Bool {
        if case .upload = self { true } else { false }
    }

    func run(on client: TransferClient) async throws -> TransferSnapshot {
        switch self {
        case .download(let reference, let overwrites):
            let id = try await client.enqueueDownload(
                reference, to: SimulatedHost.destination,
                options: DownloadOptions(overwrites: overwrites))
            return try await client.run(id)
        case .upload:
            // Like the command line, this does not upload the same file twice.
            let path = SimulatedHost.source
            if let finished = try await client.finishedUpload(path: path) { return finished }
            return try await client.run(try await client.enqueueUpload(path: path))
        }
    }
}

/// The end that a command reported.
enum SimulatedEnd: Sendable, Equatable {
    case completed
    /// The command failed with a code of the error table.
    case refused(ErrorCode)
    /// The command ended in any other way.
    case other(String)

    init(_ snapshot: TransferSnapshot) {
        switch (snapshot.state, snapshot.errorCode) {
        case (.completed, _): self = .completed
        case (.failed, let code?): self = .refused(code)
        default: self = .other("\(snapshot.state): \(snapshot.message)")
        }
    }

    init(_ error: any Error) {
        if let error = error as? TransferError {
            self = .refused(error.code)
        } else {
            self = .other(String(reflecting: error))
        }
    }
}
