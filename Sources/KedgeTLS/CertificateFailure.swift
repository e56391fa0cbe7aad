/// The reason why a certificate and its key cannot be used. Equality covers all members.
package struct CertificateFailure: Error, Hashable {
    /// The file at fault; the raw value is the setting that names it.
    package enum File: String, Sendable {
        case certificate = "tls.certificate"
        case key = "tls.key"
    }

    package enum Reason: Hashable, Sendable {
        /// The system refused to open or to read it.
        case unreadable(String)
        /// It is a directory or a device, or far larger than any certificate.
        case notCertificateFile
        /// It has no certificate or no key in PEM format.
        case malformed
        /// The group or other users may read or write the key.
        case accessible(permissions: UInt16)
        /// The key belongs to another certificate than the first one of the file.
        case mismatch
        /// TLS cannot use the certificate.
        case unusable
    }

    package let file: File
    package let path: String
    package let reason: Reason

    init(_ file: File, _ path: String, _ reason: Reason) {
        self.file = file
        self.path = path
        self.reason = reason
    }
}

extension CertificateFailure: CustomStringConvertible {
    /// A sentence for the operator, with the setting and the path.
    package var description: String { "\(file.rawValue): \(path) \(sentence)" }

    private var sentence: String {
        switch (reason, file) {
        case (.unreadable(let cause), _): "cannot be read: \(cause)."
        case (.notCertificateFile, _): "is not a regular file of at most 1 MiB."
        case (.malformed, .certificate): "has no certificate in PEM format."
        case (.malformed, .key): "has no private key in PEM format without a passphrase."
        case (.accessible(let permissions), _):
            "is accessible to its group or to other users (mode "
                + "\(String(permissions, radix: 8))): run chmod 600 on it."
        case (.mismatch, _): "does not belong to the first certificate in tls.certificate."
        case (.unusable, _): "cannot be used for TLS; use a certificate with an ECDSA or RSA key."
        }
    }
}
