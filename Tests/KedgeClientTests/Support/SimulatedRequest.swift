import KedgeClient
import KedgeModel

/// A command that somebody gives, and gives again when it did not end well.
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
            // As the command line does: the same file is not uploaded twice.
            let path = SimulatedHost.source
            if let finished = try await client.finishedUpload(path: path) { return finished }
            return try await client.run(try await client.enqueueUpload(path: path))
        }
    }
}

/// How a command ended, as the one who gave it was told.
enum SimulatedEnd: Sendable, Equatable {
    case completed
    /// With a code of the table.
    case refused(ErrorCode)
    /// With anything else.
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
