package import KedgeModel

/// A text that appears in no description, dump or reflection.
package struct Secret: Hashable, Sendable {
    /// The text itself, only for signatures and for requests of credentials.
    let text: String

    package init(_ text: String) { self.text = text }
}

extension Secret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "(secret)" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// The keys that sign requests.
package struct S3Credentials: Hashable, Sendable {
    package let accessKeyID: String
    package let secretAccessKey: Secret
    /// Present with temporary credentials.
    package let sessionToken: Secret?
    /// The time at which they expire; nil if they do not.
    package let expiresAt: Timestamp?

    package init(
        accessKeyID: String, secretAccessKey: Secret, sessionToken: Secret? = nil,
        expiresAt: Timestamp? = nil
    ) {
        self.accessKeyID = accessKeyID
        self.secretAccessKey = secretAccessKey
        self.sessionToken = sessionToken
        self.expiresAt = expiresAt
    }
}

/// Provides the credentials of each request.
package protocol CredentialsProvider: Sendable {
    /// Returns valid credentials.
    ///
    /// - Throws: ``S3SetupError`` when there are none.
    func credentials() async throws -> S3Credentials
    /// Invalidates credentials that the store refused; the next call fetches new ones.
    func invalidate(_ refused: S3Credentials) async
}

/// Credentials that never change.
package struct FixedCredentials: CredentialsProvider {
    private let value: S3Credentials

    package init(_ value: S3Credentials) { self.value = value }

    package func credentials() async throws -> S3Credentials { value }
    package func invalidate(_ refused: S3Credentials) async {}
}

/// A source of credentials.
package protocol CredentialsSource: Sendable {
    /// Returns the credentials; nil when this source is not configured.
    func load() async throws -> S3Credentials?
}
