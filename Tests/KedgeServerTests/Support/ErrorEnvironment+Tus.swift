import KedgeModel
import KedgeTesting
import Testing

extension ErrorEnvironment {
    /// Provocations of the codes that only tus has.
    static let tusProvocations: [ErrorCode: Provocation] = [
        .uploadChecksumMismatch: { fixture in
            let path = "/tus/\(try await fixture.another().id)"
            let none = "sha1 2jmj7l5rSw0yVb/vlWAYkK/YBwk="
            return try await fixture.server.ask(
                .tusPatch(path, at: 0, [1], [("Upload-Checksum", none)]))
        },
        .uploadIsFinal: { fixture in
            let part = try await fixture.server.tusPart([1])
            let path = try await fixture.server.tusUpload([("Upload-Concat", "final;\(part)")])
            return try await fixture.server.ask(.tusPatch(path, at: 0, [1]))
        },
        .uploadVersionUnsupported: { fixture in
            try await fixture.server.ask(HTTPRequestBytes("POST", "/tus/"))
        },
    ]
}
