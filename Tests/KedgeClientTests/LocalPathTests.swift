import Foundation
import KedgeClient
import Testing

struct LocalPathTests {
    @Test func `parent segments in a path are left to the system`() {
        #expect(LocalPath.absolute("/a/link/../f") == "/a/link/../f")
    }

    @Test func `a relative path begins at the working directory`() {
        let directory = FileManager.default.currentDirectoryPath
        #expect(LocalPath.absolute("x/./y//z") == directory + "/x/y/z")
    }

    @Test(arguments: ["abc", "W/\"abc\"", "\"abc", "\"", ""])
    func `an entity tag that is not strong and quoted is not used`(value: String) {
        #expect(RemoteFile.strongETag(value) == nil)
    }
}
