internal import HTTPTypes
internal import Hummingbird
internal import KedgeEngine
internal import KedgeModel

extension TusRoutes {
    /// `HEAD`: reports the offset of the upload. Stops an append that is still running, because the
    /// client has given it up. The offset includes all its bytes.
    ///
    /// Clients consider an upload finished when its offset equals its length. The file is therefore
    /// created before such an offset is reported, even if the process ended between the last byte
    /// and the file.
    @Sendable func head(
        _ request: Request, _ context: KedgeRequestContext
    ) async throws -> Response {
        try await RequestError.reportingDamageAsGone { try await progress(context) }
    }

    private func progress(_ context: KedgeRequestContext) async throws -> Response {
        var upload = try await upload(context)
        if upload.awaitsSources {
            let owner = context.owner
            if case .waiting(let length) = try await engine.concatenate(
                upload.view.id, owner: owner)
            {
                return Self.head(upload, length: length)
            }
            upload = try await self.upload(context)
        } else if !upload.isWhole {
            upload = try await self.upload(context, stopsAppend: true)
        }
        let wasOpen = upload.view.state != .completed
        do {
            if try await file(of: upload, context) != nil, wasOpen {
                upload = try await self.upload(context)
            }
        } catch let error as EngineError where [.missingChunks, .unavailable].contains(error.code) {
            // Stored bytes were damaged, perhaps found by another request at the same time: clients
            // continue from the lower offset, but begin a new upload after an error.
            upload = try await self.upload(context)
            if error.code == .unavailable, upload.isWhole { throw error }
        }
        return Self.head(upload, length: upload.view.fileSize)
    }

    private static func head(_ upload: TusUpload, length: Int64?) -> Response {
        // A final upload has no offset before it has all bytes.
        let offset = upload.awaitsSources ? nil : upload.view.offset
        var fields = upload.progressFields
        fields[.cacheControl] = "no-store"
        fields[TusField.offset] = offset.map { String($0) }
        fields[TusField.length] = length.map { String($0) }
        if length == nil, upload.sourceIDs == nil { fields[TusField.deferLength] = "1" }
        fields[TusField.metadata] = upload.metadataText
        fields[TusField.concat] = upload.view.metadata[TusUpload.MetadataKey.concat]
        if offset != nil, offset == length, !upload.isPartial { fields[TusField.expires] = nil }
        return Response(status: .ok, headers: fields)
    }
}
