/// The location of a bucket, and how it is used.
package struct S3Configuration: Hashable, Sendable {
    /// The part of a request's URL that contains the bucket's name.
    package enum AddressingStyle: String, Hashable, Sendable {
        case path
        case virtual
    }

    package let bucket: String
    /// The prefix of all keys of this store; ends in a slash unless it is empty.
    package let prefix: String
    package let endpoint: S3Endpoint
    package let region: String
    package let style: AddressingStyle
    /// Whether downloads are redirected to presigned URLs of the store, valid for some minutes.
    package let redirectsReaders: Bool
    /// Directory of the unnamed files that buffer bytes between arrival and upload.
    package let spoolDirectory: String
    /// Whether to send the SHA-256 of each object and part as a checksum for the store to keep. A
    /// store that refuses checksums is detected and gets none.
    package let sendsChecksums: Bool
    /// Bytes of saved chunks that the spools of all sessions keep for hashing; 1 GiB. With less,
    /// files whose chunks arrive out of order are read back from the bucket more often.
    package var spoolBudgetByteCount: Int64 = 1 << 30
    /// Free bytes of the spool's disk that uploads never use.
    package var spoolReserveByteCount: Int64 = 64 << 20
    /// Largest number of connections to the store; 64. Each chunk in flight needs one.
    package var maxConnectionCount = 64
    /// Shortest total timeout of a request with its retries; 60 seconds. Large requests get more.
    package var timeout = Duration.seconds(60)

    /// Pause of copies within the store after one has failed; 10 minutes.
    package var copyPause = Duration.seconds(600)

    /// Parses `s3://bucket/prefix?…`. The parameters are `endpoint`, `region`, `style` (`path` or
    /// `virtual`), `redirect` (`on` or `off`), `spool` and `checksum` (`auto` or `off`).
    ///
    /// - Parameter environment: `AWS_REGION`, `AWS_DEFAULT_REGION` and `TMPDIR` are the defaults.
    package init(
        url: String, environment: [String: String]
    ) throws(S3SetupError) {
        let (place, parameters) = try Self.parts(of: url)
        (bucket, prefix) = try Self.bucketAndPrefix(place)
        region =
            parameters["region"] ?? environment["AWS_REGION"] ?? environment["AWS_DEFAULT_REGION"]
            ?? "us-east-1"
        guard Self.isName(region) else { throw S3SetupError("the region is not valid") }
        let address = parameters["endpoint"] ?? "https://s3.\(region).amazonaws.com"
        guard let endpoint = S3Endpoint(address),
            address.split(separator: "/", omittingEmptySubsequences: true).count == 2
        else { throw S3SetupError("endpoint must be http://host or https://host") }
        self.endpoint = endpoint
        let usual = parameters["endpoint"] == nil ? "virtual" : "path"
        guard let style = AddressingStyle(rawValue: parameters["style"] ?? usual) else {
            throw S3SetupError("style must be path or virtual")
        }
        self.style = style
        redirectsReaders = try Self.flag("redirect", in: parameters, on: "on", usual: false)
        sendsChecksums = try Self.flag("checksum", in: parameters, on: "auto", usual: true)
        // Not `/tmp`, which is in memory on many systems.
        spoolDirectory = parameters["spool"] ?? environment["TMPDIR"] ?? "/var/tmp"
        guard spoolDirectory.hasPrefix("/") else {
            throw S3SetupError("spool must be an absolute path")
        }
    }

    private static let parameterNames: Set = [
        "endpoint", "region", "style", "redirect", "spool", "checksum",
    ]

    private static func parts(
        of url: String
    ) throws(S3SetupError) -> (Substring, [String: String]) {
        guard url.hasPrefix("s3://") else {
            throw S3SetupError("the address must begin with s3://")
        }
        let halves = url.dropFirst(5).split(
            separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        var parameters: [String: String] = [:]
        for item in halves.count > 1 ? halves[1].split(separator: "&") : [] {
            let sides = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = String(sides[0])
            guard parameterNames.contains(name) else {
                throw S3SetupError("the address has an unknown parameter, \(name)")
            }
            guard sides.count == 2, let value = PercentEncoding.decode(sides[1]), !value.isEmpty
            else { throw S3SetupError("\(name) has no value") }
            guard parameters.updateValue(value, forKey: name) == nil else {
                throw S3SetupError("\(name) is given twice")
            }
        }
        return (halves[0], parameters)
    }

    private static func bucketAndPrefix(
        _ place: Substring
    ) throws(S3SetupError) -> (String, String) {
        let parts = place.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        let bucket = String(parts[0])
        guard (3...63).contains(bucket.utf8.count), isName(bucket) else {
            throw S3SetupError("the address has no bucket name")
        }
        let names = parts.count > 1 ? parts[1].split(separator: "/") : []
        var prefix = ""
        for name in names {
            guard let text = PercentEncoding.decode(name), text != ".", text != "..",
                text.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7F })
            else { throw S3SetupError("the prefix is not valid") }
            prefix += "\(text)/"
        }
        guard prefix.utf8.count <= 200 else { throw S3SetupError("the prefix is too long") }
        return (bucket, prefix)
    }

    private static func flag(
        _ name: String, in parameters: [String: String], on: String, usual: Bool
    ) throws(S3SetupError) -> Bool {
        switch parameters[name] {
        case nil: return usual
        case on: return true
        case "off": return false
        default: throw S3SetupError("\(name) must be \(on) or off")
        }
    }

    private static func isName(_ text: String) -> Bool {
        text.utf8.first != UInt8(ascii: ".")
            && text.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
                    UInt8(ascii: "-"), UInt8(ascii: "."):
                    true
                default: false
                }
            }
    }
}
