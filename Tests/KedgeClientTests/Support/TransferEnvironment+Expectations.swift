import KedgeClient
import KedgeHash
import KedgeModel
import Testing

extension TransferEnvironment {
    /// Compares apart, so that a failure does not print hundreds of thousands of numbers.
    func expectStored(_ snapshot: TransferSnapshot, _ bytes: [UInt8]) {
        let isStored = storedBytes(snapshot.remoteFileID) == bytes
        #expect(isStored)
    }

    /// Expects a completed, verified upload for which no acknowledged byte was sent again.
    func expectUploaded(_ snapshot: TransferSnapshot, _ bytes: [UInt8]) {
        #expect(snapshot.state == .completed, "\(snapshot.message)")
        expectStored(snapshot, bytes)
        #expect(snapshot.sha256 == SHA256Hasher.digest(of: bytes))
        #expect(snapshot.verification == .sha256)
        #expect(snapshot.bytesTransferred == Int64(bytes.count))
        #expect(snapshot.errorCode == nil)
        #expect(repeatedByteCount == 0)
    }
}
