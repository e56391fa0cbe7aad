internal import Foundation

/// An authority for tests and the certificates that it has issued, made by openssl.
package struct TestAuthority: Sendable {
    /// A certificate and its key, as PEM files.
    package struct Issued: Sendable {
        package let certificate: String
        package let key: String
        /// In lowercase hexadecimal digits.
        package let serialNumber: String
    }

    /// The authority, as a PEM file for clients.
    package let certificate: String
    private let directory: String
    private var key: String { "\(directory)/ca.key" }

    /// Makes an authority in a directory of the test.
    package static func make(in directory: String) async throws -> TestAuthority {
        let authority = TestAuthority(certificate: "\(directory)/ca.pem", directory: directory)
        try await Tool.require(
            "openssl",
            ["req", "-x509", "-newkey"] + curve
                + ["-keyout", authority.key, "-out", authority.certificate, "-days", "2"]
                + ["-subj", "/CN=authority of a test"])
        return authority
    }

    private static let curve = ["ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]

    /// Issues a certificate for `localhost` and 127.0.0.1.
    ///
    /// - Parameters:
    ///   - name: Beginning of the names of its files.
    ///   - days: Days until it expires; negative for an expired one.
    ///   - keyOptions: The arguments of openssl that choose another kind of key than ECDSA.
    package func issue(
        _ name: String, days: Int = 2, keyOptions: [String]? = nil
    ) async throws -> Issued {
        let path = "\(directory)/\(name)"
        try "subjectAltName=DNS:localhost,IP:127.0.0.1\n".write(
            toFile: "\(path).ext", atomically: false, encoding: .utf8)
        try await Tool.require(
            "openssl",
            ["req", "-newkey"] + (keyOptions ?? Self.curve)
                + ["-keyout", "\(path).key", "-out", "\(path).csr", "-subj", "/CN=localhost"])
        try await Tool.require(
            "openssl",
            ["x509", "-req", "-in", "\(path).csr", "-CA", certificate, "-CAkey", key]
                + ["-set_serial", "0x\(Self.freshSerial())", "-extfile", "\(path).ext"]
                + ["-days", "\(days)", "-out", "\(path).pem"])
        try FileManager.default.setAttributes(
            [.posixPermissions: 0o600], ofItemAtPath: "\(path).key")
        let text = try await Tool.require(
            "openssl", ["x509", "-noout", "-serial", "-in", "\(path).pem"])
        return Issued(
            certificate: "\(path).pem", key: "\(path).key",
            serialNumber: Self.serialNumber(in: text) ?? "")
    }

    /// The number in a line `serial=…` of openssl; nil without one.
    package static func serialNumber(in text: String) -> String? {
        guard let mark = text.range(of: "serial=") else { return nil }
        return text[mark.upperBound...].prefix { $0.isHexDigit }.lowercased()
    }

    /// Eight digits, of which the first is neither 0 nor above 7: the number is positive and has
    /// all its bytes.
    private static func freshSerial() -> String {
        String(UInt32.random(in: 0x1000_0000...0x7FFF_FFFF), radix: 16)
    }
}

extension TestAuthority.Issued {
    /// Copies both files over those of another certificate. First the certificate, then the key, as
    /// a person would.
    package func install(over other: TestAuthority.Issued) throws {
        for (source, target) in [(certificate, other.certificate), (key, other.key)] {
            try Data(contentsOf: URL(fileURLWithPath: source)).write(
                to: URL(fileURLWithPath: target))
        }
    }
}
