// Uploads a file and prints its progress. Run again after an interruption, it resumes.
//
//     swift run --package-path examples/swift upload FILE [SERVER]

import Foundation
import KedgeClient
import KedgeModel

let arguments = CommandLine.arguments
guard arguments.count > 1 else {
    print("usage: upload FILE [SERVER]")
    exit(2)
}
let path = arguments[1]
let server = arguments.count > 2 ? arguments[2] : "http://127.0.0.1:8080"

// The records of transfers are in ~/.local/state/kedge, unless `stateDirectory` names another
// directory.
let client = try await TransferClient(configuration: ClientConfiguration(serverURL: server))
// Finds the unfinished transfer of an earlier run.
let id = try await client.enqueueUpload(path: path)

let observation = Task {
    // Confirmed bytes: the server has them on stable storage.
    for try await snapshot in client.snapshots(of: id) {
        let total = snapshot.totalBytes ?? 0
        print("\(snapshot.bytesTransferred) of \(total) bytes: \(snapshot.message)")
    }
}

// Waits for the server and retries by itself. Returns when the transfer has ended or is paused.
let result = try await client.run(id)
observation.cancel()
// A failure to observe does not matter any more.
_ = await observation.result
try await client.close()

guard result.state == .completed, let file = result.remoteFileID, let digest = result.sha256 else {
    print("\(result.errorCode?.rawValue ?? result.state.rawValue): \(result.message)")
    exit(1)
}
print(file.text, digest.hex)
