internal import KedgeModel

extension SessionRecord {
    /// Returns the error for a file of this size if the session does not permit it.
    ///
    /// `FILE_TOO_LARGE`, or `FORBIDDEN` for a file that is too small.
    func refusal(ofSize byteCount: Int64) -> EngineError? {
        SizeLimits(max: maxByteCount, min: minByteCount).refusal(ofSize: byteCount)
    }
}

extension EngineContext {
    /// Maximum size of the session's file.
    func maxFileSize(of record: SessionRecord) -> Int64 {
        min(record.maxByteCount ?? .max, configuration.maxFileSize)
    }
}

/// The limits that a permission sets on the size of a file.
struct SizeLimits {
    /// Maximum number of bytes; nil for none.
    let max: Int64?
    /// Minimum number of bytes; nil for none.
    let min: Int64?

    /// Returns the error for a file of this size; nil if it is permitted.
    func refusal(ofSize byteCount: Int64) -> EngineError? {
        if let max, byteCount > max { return .tooLarge(maxBytes: max) }
        if let min, byteCount < min {
            return EngineError(.forbidden, "The file must have at least \(min) bytes.")
        }
        return nil
    }
}
