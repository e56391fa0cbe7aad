internal import HTTPTypes
internal import KedgeEngine
internal import KedgeIdentity
internal import KedgeModel

/// A request to make a link, with checks of its members.
struct LinkRequest {
    /// More would be a mistake.
    private static let maxUses = 1_000_000

    private let message: CreateLinkRequest
    private let maxLifetimeSeconds: Int64
    private let maxMetadataByteCount: Int

    init(_ message: CreateLinkRequest, maxLifetime: Duration, maxMetadataByteCount: Int) {
        self.message = message
        maxLifetimeSeconds = maxLifetime.components.seconds
        self.maxMetadataByteCount = maxMetadataByteCount
    }

    /// Returns the permission that the link gives.
    ///
    /// - Throws: `BAD_REQUEST`, which names the first member that is wrong.
    func grant() throws -> LinkGrant {
        try Self.require((1...maxLifetimeSeconds).contains(message.expiresInSeconds)) {
            "expiresInSeconds must be 1 to \(maxLifetimeSeconds)."
        }
        // An empty list would permit everything.
        let lists = [
            message.origins, message.networks, message.mimeTypes, message.fileExtensions,
        ]
        try Self.require(lists.allSatisfy { $0?.isEmpty != true }) {
            "A list of the limits is empty: name what is permitted, or leave the member out."
        }
        let origins = message.origins ?? []
        try Self.require(origins.allSatisfy { WebOrigin($0) != nil }) {
            "origins must be origins such as https://app.example."
        }
        let networks = message.networks ?? []
        try Self.require(networks.allSatisfy { AddressNetwork($0[...]) != nil }) {
            "networks must be addresses or networks such as 192.0.2.0/24."
        }
        switch message.op {
        case .put:
            var constraints = try constraints()
            constraints.origins = origins
            constraints.networks = networks
            return .put(constraints)
        case .session:
            guard let session = message.sessionId else { throw Self.missing("sessionId") }
            var linked = LinkedSession(session: session)
            linked.origins = origins
            linked.networks = networks
            return .session(linked)
        case .get:
            guard let file = message.fileId else { throw Self.missing("fileId") }
            var linked = LinkedFile(file: file)
            if message.disposition == .inline { linked.disposition = .inline }
            linked.fileName = try fileName()
            linked.origins = origins
            linked.networks = networks
            return .get(linked)
        }
    }

    private func constraints() throws -> LinkConstraints {
        var constraints = LinkConstraints()
        try requireSizes()
        constraints.byteCount = message.fileSize
        constraints.minByteCount = message.minFileSize
        constraints.maxByteCount = message.maxFileSize
        constraints.mediaTypes = try mediaTypes()
        constraints.fileExtensions = try fileExtensions()
        constraints.fileName = try fileName()
        constraints.digest = message.fileHashSha256
        constraints.metadata = try metadata()
        constraints.uses = message.uses ?? 1
        try Self.require((1...Self.maxUses).contains(constraints.uses)) {
            "uses must be 1 to \(Self.maxUses)."
        }
        if let seconds = message.sessionLifetimeSeconds {
            try Self.require((1...maxLifetimeSeconds).contains(seconds)) {
                "sessionLifetimeSeconds must be 1 to \(maxLifetimeSeconds)."
            }
            constraints.sessionLifetimeSeconds = seconds
        }
        return constraints
    }

    private func requireSizes() throws {
        let sizes = [message.fileSize, message.minFileSize, message.maxFileSize]
        try Self.require(sizes.allSatisfy { ($0 ?? 0) >= 0 }) {
            "fileSize, minFileSize and maxFileSize must not be negative."
        }
        let (least, most) = (message.minFileSize ?? 0, message.maxFileSize ?? .max)
        try Self.require(least <= most && (least...most).contains(message.fileSize ?? least)) {
            "fileSize, minFileSize and maxFileSize permit no file."
        }
    }

    private func mediaTypes() throws -> [String] {
        let types = message.mimeTypes ?? []
        try Self.require(types.allSatisfy(Self.isMediaType)) {
            "mimeTypes must be media types such as image/png, or groups such as video/*."
        }
        return types
    }

    private static func isMediaType(_ text: String) -> Bool {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        // Both are tokens, as are names of fields.
        return parts.count == 2 && parts.allSatisfy { HTTPField.Name(String($0)) != nil }
    }

    private func fileExtensions() throws -> [String] {
        let fileExtensions = message.fileExtensions ?? []
        let areNames = fileExtensions.allSatisfy { text in
            text != "." && FileName.isValid("a\(text)") && !text.isEmpty
        }
        try Self.require(areNames) { "fileExtensions must be extensions such as png." }
        return fileExtensions
    }

    private func fileName() throws -> String? {
        guard let name = message.fileName else { return nil }
        try Self.require(FileName.isValid(name)) {
            "fileName must be 1 to \(FileName.maxByteCount) bytes without path separators."
        }
        return name
    }

    private func metadata() throws -> [String: String] {
        let metadata = message.metadata ?? [:]
        try Self.require(!metadata.keys.contains { $0.hasPrefix("kedge.") }) {
            "Metadata keys that begin with \"kedge.\" are reserved."
        }
        let byteCount = metadata.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count }
        try Self.require(byteCount <= maxMetadataByteCount) {
            "metadata is larger than \(maxMetadataByteCount) bytes."
        }
        try Self.require(metadata[FilePath.metadataKey].map(FilePath.isStorable) ?? true) {
            "The path in the metadata has a NUL or more than \(FilePath.maxByteCount) bytes."
        }
        return metadata
    }

    private static func missing(_ member: String) -> EngineError {
        EngineError(.badRequest, "The member \(member) is missing.")
    }

    private static func require(_ condition: Bool, _ sentence: () -> String) throws {
        guard condition else { throw EngineError(.badRequest, sentence()) }
    }
}
