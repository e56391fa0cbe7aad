import HTTPTypes
import KedgeClient
import KedgeHash
import KedgeModel

extension FakeUploadServer.State {
    mutating func answerTus(_ seen: FakeServer.Seen, _ body: [UInt8], isCut: Bool) -> Reply {
        if seen.method == "OPTIONS" { return tusOptions() }
        guard seen.fields[.named("Tus-Resumable")] == "1.0.0" else { return Reply(status: 412) }
        if seen.method == "POST" {
            guard let size = seen.fields[.uploadLength].flatMap({ Int64($0) }) else {
                return Reply(status: 400)
            }
            let location = begin(seen, size: size)
            if size == 0 { finish("\(uploadCount)") }
            return Reply(status: 201, fields: [.location: location])
        }
        guard let number = number(seen), let upload = uploads[number] else {
            return Reply(status: 404)
        }
        switch seen.method {
        case "HEAD":
            if forgetsFinished, upload.isComplete { return Reply(status: 404) }
            return Reply(status: 200, fields: tusFields(upload))
        case "PATCH": return tusPatch(number, upload, seen, body, isCut: isCut)
        case "DELETE":
            uploads[number] = nil
            return Reply(status: 204)
        default: return Reply(status: 405)
        }
    }

    private func tusOptions() -> Reply {
        var fields: HTTPFields = [.named("Tus-Version"): "1.0.0,0.2.2"]
        if let extensions { fields[.named("Tus-Extension")] = extensions }
        if let algorithms { fields[.named("Tus-Checksum-Algorithm")] = algorithms }
        if let maxSize { fields[.named("Tus-Max-Size")] = "\(maxSize)" }
        return Reply(status: 204, fields: fields)
    }

    private func tusFields(_ upload: FakeUploadServer.Upload) -> HTTPFields {
        var fields = reportedFile(upload)
        fields[.uploadOffset] = "\(upload.bytes.count)"
        fields[.uploadLength] = upload.size.map { "\($0)" }
        return fields
    }

    private mutating func tusPatch(
        _ number: String, _ upload: FakeUploadServer.Upload, _ seen: FakeServer.Seen,
        _ body: [UInt8], isCut: Bool
    ) -> Reply {
        guard seen.fields[.contentType] == "application/offset+octet-stream" else {
            return Reply(status: 415)
        }
        guard let offset = seen.fields[.uploadOffset].flatMap({ Int($0) }) else {
            return Reply(status: 400)
        }
        guard offset == upload.bytes.count else {
            repeatedByteCount += max(0, min(body.count, upload.bytes.count - offset))
            return Reply(status: 409)
        }
        if let checksum = seen.fields[.named("Upload-Checksum")] {
            let words = checksum.split(separator: " ").map(String.init)
            guard let algorithm = ChecksumAlgorithm(rawValue: words[0]),
                algorithms?.split(separator: ",").contains(Substring(words[0])) == true
            else { return Reply(status: 400) }
            var hasher = ChecksumHasher(algorithm)
            hasher.update(body)
            if isCut || Base64.encode(hasher.checksum()) != words[1] { return Reply(status: 460) }
        }
        if isCut, !keepsBrokenBodies { return Reply(status: 0) }
        append(body, to: number)
        guard let now = uploads[number] else { return Reply(status: 404) }
        if Int64(now.bytes.count) == now.size { finish(number) }
        return Reply(status: 204, fields: [.uploadOffset: "\(now.bytes.count)"])
    }
}

extension FakeUploadServer.State {
    mutating func answerIETF(_ seen: FakeServer.Seen, _ body: [UInt8], isCut: Bool) -> Reply {
        let interop = seen.fields[.named("Upload-Draft-Interop-Version")].flatMap { Int($0) }
        guard versions.contains(interop) else { return Reply(status: 400) }
        let version =
            interop.flatMap { ResumableUploadVersion(interopVersion: Int64($0)) } ?? .final
        let field = HTTPField.Name.named(version.completenessField)
        if seen.method == "POST" {
            guard version.isComplete(seen.fields[field]) == false else {
                return Reply(status: 400)
            }
            let size = seen.fields[.uploadLength].flatMap { Int64($0) }
            var fields: HTTPFields = [.location: begin(seen, size: size)]
            fields[field] = version.value(isComplete: false)
            if version.hasLengthAndLimits { fields[.named("Upload-Limit")] = limit ?? "min-size=0" }
            return Reply(status: 201, fields: fields)
        }
        guard let number = number(seen), let upload = uploads[number] else {
            return Reply(status: 404)
        }
        switch seen.method {
        case "HEAD":
            if forgetsFinished, upload.isComplete { return Reply(status: 404) }
            return Reply(status: 204, fields: ietfFields(upload, version))
        case "PATCH":
            return ietfPatch(number, upload, seen, version, body, isCut: isCut)
        case "DELETE":
            uploads[number] = nil
            return Reply(status: 204)
        default: return Reply(status: 405)
        }
    }

    private func ietfFields(
        _ upload: FakeUploadServer.Upload, _ version: ResumableUploadVersion
    ) -> HTTPFields {
        var fields = reportedFile(upload)
        fields[.uploadOffset] = "\(upload.bytes.count)"
        fields[.named(version.completenessField)] = version.value(isComplete: upload.isComplete)
        if version.hasLengthAndLimits {
            fields[.uploadLength] = upload.size.map { "\($0)" }
            fields[.named("Upload-Limit")] = limit
        }
        return fields
    }

    private mutating func ietfPatch(
        _ number: String, _ upload: FakeUploadServer.Upload, _ seen: FakeServer.Seen,
        _ version: ResumableUploadVersion, _ body: [UInt8], isCut: Bool
    ) -> Reply {
        guard seen.fields[.contentType] == version.appendMediaType else {
            return Reply(status: 415)
        }
        guard let offset = seen.fields[.uploadOffset].flatMap({ Int($0) }),
            let isLast = version.isComplete(seen.fields[.named(version.completenessField)])
        else { return Reply(status: 400) }
        guard !upload.isComplete else { return Reply(status: 400) }
        guard offset == upload.bytes.count else {
            repeatedByteCount += max(0, min(body.count, upload.bytes.count - offset))
            return Reply(status: 409, fields: [.uploadOffset: "\(upload.bytes.count)"])
        }
        if checksContentDigest, let digest = seen.fields[.contentDigest] {
            let isRight = DigestHeader.parseRFC9530(digest) == SHA256Hasher.digest(of: body)
            if isCut || !isRight { return Reply(problem: .chunkHashMismatch) }
        }
        if isCut, !keepsBrokenBodies { return Reply(status: 0) }
        append(body, to: number)
        guard let now = uploads[number], isLast, !isCut else {
            var fields: HTTPFields = [.uploadOffset: "\(uploads[number]?.bytes.count ?? 0)"]
            fields[.named(version.completenessField)] = version.value(isComplete: false)
            return Reply(status: 204, fields: fields)
        }
        uploads[number]?.size = Int64(now.bytes.count)
        finish(number)
        // The target resource's own answer can be anything.
        return Reply(status: 200, body: Array("thank you".utf8))
    }
}

extension HTTPField.Name {
    /// Makes a name from well-formed text.
    static func named(_ text: String) -> Self {
        guard let name = Self(text) else { preconditionFailure("\(text) is no name") }
        return name
    }
}
