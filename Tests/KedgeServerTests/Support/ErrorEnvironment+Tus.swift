import KedgeModel
import KedgeTesting
import Testing

extension ErrorScene {
    /// Provocations of the codes that only tus has.
    static let tusProvocations: [ErrorCode: Provocation] = [
        .uploadChecksumMismatch: { scene in
            let path = "/tus/\(try await scene.another().id)"
            let none = "sha1 2jmj7l5rSw0yVb/vlWAYkK/YBwk="
            return try await scene.server.ask(
                .tusPatch(path, at: 0, [1], [("Upload-Checksum", none)]))
        },
        .uploadIsFinal: { scene in
            let part = try await scene.server.tusPart([1])
            let path = try await scene.server.tusUpload([("Upload-Concat", "final;\(part)")])
            return try await scene.server.ask(.tusPatch(path, at: 0, [1]))
        },
        .uploadVersionUnsupported: { scene in
            try await scene.server.ask(HTTPRequestBytes("POST", "/tus/"))
        },
    ]
}
