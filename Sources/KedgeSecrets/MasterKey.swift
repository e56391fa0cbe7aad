internal import KedgeModel

/// The secret from which a service derives its keys. It is kept outside the database, so that a
/// backup of rows signs nothing.
package struct MasterKey: Sendable {
    /// Number of random bytes in a key.
    package static let byteCount = 32

    private let bytes: [UInt8]

    private init(bytes: [UInt8]) { self.bytes = bytes }

    /// Makes a new key.
    package static func generate() -> MasterKey {
        MasterKey(bytes: SecureRandom.bytes(byteCount))
    }

    /// Reads a line of a key file; nil unless it is base64url of 32 bytes.
    package init?(text: some StringProtocol) {
        guard let bytes = Base64URL.decode(text), bytes.count == Self.byteCount else { return nil }
        self.bytes = bytes
    }

    /// The line of a key file, for that file only.
    package var text: String { Base64URL.encode(bytes) }

    /// Identifies the key in rows and messages: 16 hexadecimal digits, which do not reveal it.
    package var fingerprint: String {
        Hex.encode(derive("kedge master key fingerprint").prefix(8))
    }

    /// Returns the key for a purpose, 32 bytes.
    package func derive(_ purpose: String) -> [UInt8] {
        HKDFSHA256.derive(Self.byteCount, from: bytes, info: Array(purpose.utf8))
    }
}

extension MasterKey: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The fingerprint; the key itself appears in no log or dump.
    package var description: String { "master key \(fingerprint)" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
