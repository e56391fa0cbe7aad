/// Only the ctime of the file differs from the record. The bytes read so far must be compared
/// before more are sent.
struct SourceTouched: Error {
    /// Current identity of the file.
    let current: SourceIdentity
}
