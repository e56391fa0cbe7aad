/// The master keys of a service: the first derives new keys, the others only those that verify.
package struct MasterKeys: Sendable {
    /// The key from which new keys are derived.
    package let first: MasterKey
    private let keys: [String: MasterKey]

    /// The keys of a service that has only this one.
    package init(_ key: MasterKey) {
        first = key
        keys = [key.fingerprint: key]
    }

    /// Reads the text of a key file: a key a line. Empty lines are ignored.
    package init(text: some StringProtocol) throws(MasterKeysError) {
        var found: [MasterKey] = []
        var keys: [String: MasterKey] = [:]
        let lines = text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        for (place, line) in lines.enumerated() where !line.isEmpty {
            guard let key = MasterKey(text: String(decoding: line, as: UTF8.self)) else {
                throw MasterKeysError.invalidLine(place + 1)
            }
            guard keys.updateValue(key, forKey: key.fingerprint) == nil else {
                throw MasterKeysError.repeatedLine(place + 1)
            }
            found.append(key)
        }
        guard let first = found.first else { throw MasterKeysError.empty }
        self.first = first
        self.keys = keys
    }

    /// The key with this fingerprint; nil if the service does not have it.
    package subscript(fingerprint: String) -> MasterKey? { keys[fingerprint] }

    /// The fingerprints of all keys.
    package var fingerprints: Set<String> { Set(keys.keys) }
}

/// A reason why a text is no list of master keys. It never has text of the file.
package enum MasterKeysError: Error, Hashable, Sendable {
    /// The text has no key.
    case empty
    /// The line, counted from 1, is not base64url of 32 bytes.
    case invalidLine(Int)
    /// The line, counted from 1, has the key of an earlier line.
    case repeatedLine(Int)
}

extension MasterKeysError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .empty: "it has no key"
        case .invalidLine(let line): "line \(line) is not a key: 32 bytes as base64url"
        case .repeatedLine(let line): "line \(line) repeats an earlier key"
        }
    }
}
