/// Verifies tokens that other servers have issued.
package protocol BearerVerifier: Sendable {
    /// Returns the principal of a JSON Web Token.
    ///
    /// May wait some seconds for the keys of an issuer.
    func principal(ofJWT text: String) async throws(BearerRefusal) -> Principal

    /// Returns the time since the keys of an issuer were fetched, of the issuer with the oldest
    /// ones; nil before the first keys of any issuer.
    func keyAge() async -> Duration?
}
