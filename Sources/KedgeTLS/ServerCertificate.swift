package import KedgeFiles
package import KedgeModel
internal import NIOCore
internal import NIOSSL

/// A certificate with its key, ready for connections.
package struct ServerCertificate: Sendable {
    /// The ciphers of TLS 1.2 with forward secrecy and authenticated encryption, which include all
    /// that RFC 9325 section 4.2 recommends. TLS 1.3 has no others.
    private static let cipherSuites = "ECDHE+AESGCM:ECDHE+CHACHA20"

    /// Time that a client gets to answer the end of a connection with its own.
    private static let shutdownTimeout = TimeAmount.seconds(1)

    /// The end of its validity.
    package let expiresAt: Timestamp
    /// The serial number in hexadecimal digits.
    package let serialNumber: String

    /// Keeps the keys of its session tickets, so that no client resumes with another certificate.
    let context: NIOSSLContext

    /// Reads and checks both files. An expired certificate is accepted, because the service must
    /// start, and clients say what is wrong. Blocks.
    package static func load(
        _ settings: TLSSettings, from fileSystem: any FileSystem = POSIXFileSystem()
    ) throws(CertificateFailure) -> ServerCertificate {
        let chain = try readChain(settings.certificatePath, fileSystem)
        let key = try readKey(settings.keyPath, fileSystem)
        let context: NIOSSLContext
        do {
            context = try NIOSSLContext(
                configuration: configuration(chain, key, settings.minimum))
        } catch NIOSSLError.failedToLoadPrivateKey {
            throw CertificateFailure(.key, settings.keyPath, .mismatch)
        } catch {
            throw CertificateFailure(.certificate, settings.certificatePath, .unusable)
        }
        let expiry = Int64(chain[0].notValidAfter)
        return ServerCertificate(
            expiresAt: Timestamp(millisecondsSinceEpoch: expiry * 1000),
            serialNumber: Hex.encode(chain[0].serialNumber), context: context)
    }

    private static func readChain(
        _ path: String, _ fileSystem: any FileSystem
    ) throws(CertificateFailure) -> [NIOSSLCertificate] {
        let file = try PEMFile.read(.certificate, at: path, from: fileSystem)
        guard !file.bytes.isEmpty else { throw CertificateFailure(.certificate, path, .malformed) }
        do {
            return try NIOSSLCertificate.fromPEMBytes(file.bytes)
        } catch {
            throw CertificateFailure(.certificate, path, .malformed)
        }
    }

    private static func readKey(
        _ path: String, _ fileSystem: any FileSystem
    ) throws(CertificateFailure) -> NIOSSLPrivateKey {
        let file = try PEMFile.read(.key, at: path, from: fileSystem)
        guard file.permissions & 0o077 == 0 else {
            throw CertificateFailure(
                .key, path, .accessible(permissions: file.permissions & 0o777))
        }
        guard !file.bytes.isEmpty else { throw CertificateFailure(.key, path, .malformed) }
        do {
            return try NIOSSLPrivateKey(bytes: file.bytes, format: .pem)
        } catch {
            throw CertificateFailure(.key, path, .malformed)
        }
    }

    private static func configuration(
        _ chain: [NIOSSLCertificate], _ key: NIOSSLPrivateKey, _ minimum: TLSMinimum
    ) -> TLSConfiguration {
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(key))
        configuration.minimumTLSVersion =
            switch minimum {
            case .version12: .tlsv12
            case .version13: .tlsv13
            }
        configuration.cipherSuites = cipherSuites
        configuration.applicationProtocols = ["http/1.1"]
        configuration.shutdownTimeout = shutdownTimeout
        return configuration
    }
}
