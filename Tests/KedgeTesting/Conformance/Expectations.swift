internal import KedgeEngine
internal import Testing

/// Expects that the store refuses, in whatever words.
func expectRefusal(
    _ location: SourceLocation = #_sourceLocation, _ operation: () async throws -> Void
) async {
    do {
        try await operation()
        Issue.record("the store accepted it", sourceLocation: location)
    } catch MetadataError.failed {
        // As it should be.
    } catch {
        Issue.record(error, sourceLocation: location)
    }
}
