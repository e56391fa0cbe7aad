internal import KedgeModel

extension LinkPayload {
    init(_ link: Link) {
        self.init(
            version: Self.currentVersion, kind: link.kind, owner: link.owner.text,
            expiresAt: link.expiresAt.millisecondsSinceEpoch / 1000,
            notBefore: link.notBefore.map { $0.millisecondsSinceEpoch / 1000 }, id: link.id,
            createdBy: link.createdBy)
        switch link.grant {
        case .put(let constraints): set(constraints)
        case .session(let linked): set(linked)
        case .get(let file): set(file)
        }
    }

    private mutating func set(_ constraints: LinkConstraints) {
        maxByteCount = constraints.maxByteCount
        minByteCount = constraints.minByteCount
        byteCount = constraints.byteCount
        mediaTypes = Self.unlessEmpty(constraints.mediaTypes)
        fileExtensions = Self.unlessEmpty(constraints.fileExtensions)
        fileName = constraints.fileName
        digest = constraints.digest
        metadata = constraints.metadata.isEmpty ? nil : constraints.metadata
        uses = constraints.uses
        sessionLifetimeSeconds = constraints.sessionLifetimeSeconds
        origins = Self.unlessEmpty(constraints.origins)
        networks = Self.unlessEmpty(constraints.networks)
    }

    private mutating func set(_ linked: LinkedSession) {
        session = linked.session
        origins = Self.unlessEmpty(linked.origins)
        networks = Self.unlessEmpty(linked.networks)
    }

    private mutating func set(_ linked: LinkedFile) {
        file = linked.file
        disposition = linked.disposition
        savedName = linked.fileName
        origins = Self.unlessEmpty(linked.origins)
        networks = Self.unlessEmpty(linked.networks)
    }

    private static func unlessEmpty(_ list: [String]) -> [String]? { list.isEmpty ? nil : list }
}

extension Link {
    /// Reads the members of a verified payload; nil if they are not those of a link.
    init?(_ payload: LinkPayload) {
        guard payload.version == LinkPayload.currentVersion,
            let owner = OwnerID(checking: payload.owner), let grant = LinkGrant(payload),
            let expiresAt = Self.time(seconds: payload.expiresAt)
        else { return nil }
        var notBefore: Timestamp?
        if let seconds = payload.notBefore {
            guard let time = Self.time(seconds: seconds) else { return nil }
            notBefore = time
        }
        self.init(
            id: payload.id, owner: owner, grant: grant, expiresAt: expiresAt,
            notBefore: notBefore, createdBy: payload.createdBy)
    }

    private static func time(seconds: Int64) -> Timestamp? {
        let (milliseconds, overflow) = seconds.multipliedReportingOverflow(by: 1000)
        return overflow ? nil : Timestamp(millisecondsSinceEpoch: milliseconds)
    }
}

extension LinkGrant {
    fileprivate init?(_ payload: LinkPayload) {
        switch payload.kind {
        case .put:
            guard let constraints = LinkConstraints(payload) else { return nil }
            self = .put(constraints)
        case .session:
            guard let session = payload.session else { return nil }
            self = .session(LinkedSession(payload, session: session))
        case .get:
            guard let file = payload.file else { return nil }
            self = .get(LinkedFile(payload, file: file))
        }
    }
}

extension LinkConstraints {
    fileprivate init?(_ payload: LinkPayload) {
        let sizes = [payload.maxByteCount, payload.minByteCount, payload.byteCount]
        guard sizes.allSatisfy({ ($0 ?? 0) >= 0 }), (payload.uses ?? 1) >= 1,
            (payload.sessionLifetimeSeconds ?? 1) >= 1
        else { return nil }
        self.init()
        maxByteCount = payload.maxByteCount
        minByteCount = payload.minByteCount
        byteCount = payload.byteCount
        mediaTypes = payload.mediaTypes ?? []
        fileExtensions = payload.fileExtensions ?? []
        fileName = payload.fileName
        digest = payload.digest
        metadata = payload.metadata ?? [:]
        uses = payload.uses ?? 1
        sessionLifetimeSeconds = payload.sessionLifetimeSeconds
        origins = payload.origins ?? []
        networks = payload.networks ?? []
    }
}

extension LinkedSession {
    fileprivate init(_ payload: LinkPayload, session: SessionID) {
        self.init(session: session)
        origins = payload.origins ?? []
        networks = payload.networks ?? []
    }
}

extension LinkedFile {
    fileprivate init(_ payload: LinkPayload, file: FileID) {
        self.init(file: file)
        disposition = payload.disposition ?? .attachment
        fileName = payload.savedName
        origins = payload.origins ?? []
        networks = payload.networks ?? []
    }
}
