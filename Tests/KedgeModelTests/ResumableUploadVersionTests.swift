import KedgeModel
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

    @Test func `a client tries the newest version first, and the form without a number last`() {
        #expect(
            ResumableUploadVersion.candidates.map(\.interopVersion)
                == [9, 8, 7, 6, 5, 4, 3, nil])
    }

    @Test func `completeness is read as each draft version encodes it`() {
        let (old, new) = (ResumableUploadVersion.interop3, ResumableUploadVersion.final)
        #expect(new.isComplete("?1") == true)
        #expect(new.isComplete(" ?0;a=1") == false)
        #expect(new.isComplete("?1; a=@1;b") == true)
        #expect(old.isComplete("?1") == false)
        #expect(old.isComplete("?0") == true)
        for value in [nil, "", "1", "true", "?2", "? 1", "?1 ;a", ";?1", "?1;", "?1;A=1"] {
            #expect(new.isComplete(value) == nil)
        }
        for version in ResumableUploadVersion.candidates {
            for isComplete in [true, false] {
                #expect(version.isComplete(version.value(isComplete: isComplete)) == isComplete)
            }
        }
    }

    @Test(arguments: ResumableUploadVersion.allCases)
    func `a client sends appends with the media type that their version requires`(
        version: ResumableUploadVersion
    ) {
        let isAny = version < .interop6
        let type = isAny ? "application/octet-stream" : "application/partial-upload"
        #expect(version.appendMediaType == type)
        #expect(version.requiredAppendMediaType == (isAny ? nil : type))
    }
}
