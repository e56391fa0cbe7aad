import KedgeIdentity
import KedgeTesting

/// A verifier with answers of a test, by the whole text of a token.
final class ScriptedBearers: BearerVerifier {
    private let answers = Shared<[String: Result<Principal, BearerRefusal>]>([:])

    func answer(_ text: String, _ result: Result<Principal, BearerRefusal>) {
        answers.update { $0[text] = result }
    }

    func principal(ofJWT text: String) async throws(BearerRefusal) -> Principal {
        guard let answer = answers.value[text] else { throw BearerRefusal.malformed }
        return try answer.get()
    }

    func keyAge() async -> Duration? { .seconds(7) }
}
