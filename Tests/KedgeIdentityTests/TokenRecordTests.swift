import KedgeIdentity
import KedgeModel
import Testing

struct TokenRecordTests {
    private static let now = Timestamp(millisecondsSinceEpoch: 1_800_000_000_000)

    private let token = APIToken.generate()

    private func makeRecord(
        expiresAt: Timestamp? = nil, revokedAt: Timestamp? = nil
    ) -> TokenRecord {
        TokenRecord(
            id: token.id, secretDigest: token.secretDigest, owner: OwnerID("alice"),
            scopes: [.filesRead], name: "backup", createdBy: "admin", createdAt: Self.now,
            expiresAt: expiresAt, revokedAt: revokedAt)
    }

    @Test func `a token with its row is valid`() {
        let record = makeRecord()
        #expect(TokenRecord.verify(token, against: record, at: Self.now) == .valid(record))
    }

    @Test func `another secret and another id are unknown`() {
        let other = APIToken.generate()
        #expect(TokenRecord.verify(other, against: makeRecord(), at: Self.now) == .unknown)
        #expect(TokenRecord.verify(token, against: nil, at: Self.now) == .unknown)
        let foreign = TokenRecord(
            id: other.id, secretDigest: token.secretDigest, owner: OwnerID("alice"), scopes: [],
            name: "", createdBy: "", createdAt: Self.now)
        #expect(TokenRecord.verify(token, against: foreign, at: Self.now) == .unknown)
    }

    @Test func `a token is valid until the moment at which it expires`() {
        let record = makeRecord(expiresAt: Self.now)
        let before = Self.now.advanced(by: .milliseconds(-1))
        #expect(TokenRecord.verify(token, against: record, at: before) == .valid(record))
        #expect(TokenRecord.verify(token, against: record, at: Self.now) == .expired)
    }

    @Test(arguments: [-1, 0, 1])
    func `a revoked token is refused, also when its node has another clock`(seconds: Int) {
        let record = makeRecord(revokedAt: Self.now.advanced(by: .seconds(seconds)))
        #expect(TokenRecord.verify(token, against: record, at: Self.now) == .revoked)
    }

    @Test func `only a holder of the secret learns that a token is expired or revoked`() {
        let other = APIToken.generate()
        let expired = makeRecord(expiresAt: Self.now)
        let revoked = makeRecord(revokedAt: Self.now)
        #expect(TokenRecord.verify(other, against: expired, at: Self.now) == .unknown)
        #expect(TokenRecord.verify(other, against: revoked, at: Self.now) == .unknown)
    }
}
