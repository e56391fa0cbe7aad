import KedgeServer
import Testing

struct ResumableUploadVersionTests {
    @Test func `each supported interop number has its draft version, and no other number has one`()
    {
        let spoken = (Int64(-1)...12).filter { ResumableUploadVersion(interopVersion: $0) != nil }
        #expect(spoken == [3, 4, 5, 6, 7, 8, 9])
        for version in spoken {
            #expect(
                ResumableUploadVersion(interopVersion: version)?.interopVersion == version)
        }
    }
}
