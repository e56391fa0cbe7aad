import Foundation
import Testing

@testable import KedgeClient

struct LocalPathTests {
    @Test func `what follows a symbolic link is left to the system`() {
        #expect(LocalPath.absolute("/a/link/../f") == "/a/link/../f")
    }

    @Test func `a relative path begins at the working directory`() {
        let directory = FileManager.default.currentDirectoryPath
        #expect(LocalPath.absolute("x/./y//z") == directory + "/x/y/z")
    }

    @Test(arguments: ["abc", "W/\"abc\"", "\"abc", "\"", ""])
    func `an entity tag that is not strong and quoted is none`(value: String) {
        #expect(RemoteFile.strongETag(value) == nil)
    }
}
