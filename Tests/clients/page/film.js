// A film that the page makes itself, and whose every second has a color of its own: after a seek, the picture says
// where the player is. The pictures are VP8 key frames, as WebP has them, in WebM, whose cues say where each is.

const WIDTH = 960;
const HEIGHT = 540;
const SECONDS = 60;
const TOLERANCE = 20;

class Failed extends Error {}

function expect(condition, reason) {
  if (!condition) throw new Failed(reason);
}

// Any two seconds that follow each other differ by more than the tolerance.
function color(second) {
  return [20 + (second * 67) % 200, 20 + (second * 101) % 200, 20 + (second * 149) % 200];
}

function bytes(number, count) {
  return Array.from({ length: count }, (_, index) => Math.floor(number / 256 ** (count - 1 - index)) % 256);
}

function float(number) {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, number);
  return new Uint8Array(view.buffer);
}

function text(string) {
  return new TextEncoder().encode(string);
}

// An element of EBML (RFC 8794), whose length takes eight bytes. The id is in hexadecimal digits.
function element(id, ...contents) {
  const content = new Blob(contents.map((part) => (Array.isArray(part) ? new Uint8Array(part) : part)));
  const name = bytes(Number.parseInt(id, 16), id.length / 2);
  return new Blob([new Uint8Array([...name, 1, ...bytes(content.size, 7)]), content]);
}

// The key frame of VP8 in a WebP (RFC 9649).
async function keyFrame(webp) {
  const content = new Uint8Array(await webp.arrayBuffer());
  const view = new DataView(content.buffer);
  for (let first = 12; first < content.length;) {
    const kind = String.fromCharCode(...content.subarray(first, first + 4));
    const length = view.getUint32(first + 4, true);
    if (kind === "VP8 ") return content.subarray(first + 8, first + 8 + length);
    first += 8 + length + (length % 2);
  }
  throw new Failed("the browser makes no VP8");
}

async function frames() {
  const canvas = new OffscreenCanvas(WIDTH, HEIGHT);
  const context = canvas.getContext("2d", { alpha: false });
  // Noise makes the film long in bytes, so that a player does not read all of it ahead.
  const noise = context.createImageData(WIDTH, HEIGHT);
  for (let index = 0; index < noise.data.length; index += 1) {
    noise.data[index] = index % 4 === 3 ? 255 : Math.random() * 256;
  }
  const made = [];
  for (let second = 0; second < SECONDS; second += 1) {
    context.putImageData(noise, 0, 0);
    context.fillStyle = `rgb(${color(second).join()})`;
    context.fillRect(WIDTH / 4, HEIGHT / 4, WIDTH / 2, HEIGHT / 2);
    made.push(await keyFrame(await canvas.convertToBlob({ type: "image/webp", quality: 0.9 })));
  }
  return made;
}

export async function makeFilm() {
  const clusters = (await frames()).map((frame, second) =>
    element("1F43B675", element("E7", bytes(second * 1000, 4)), element("A3", [0x81, 0, 0, 0x80], frame)));
  const head = element("1A45DFA3",
    element("4286", [1]), element("42F7", [1]), element("42F2", [4]), element("42F3", [8]),
    element("4282", text("webm")), element("4287", [2]), element("4285", [2]));
  const information = element("1549A966",
    element("2AD7B1", bytes(1_000_000, 4)), element("4489", float(SECONDS * 1000)),
    element("4D80", text("test")), element("5741", text("test")));
  const tracks = element("1654AE6B", element("AE",
    element("D7", [1]), element("73C5", [1]), element("83", [1]), element("86", text("V_VP8")),
    element("E0", element("B0", bytes(WIDTH, 2)), element("BA", bytes(HEIGHT, 2)))));
  // Cues have one length, whatever they say, so the places of the clusters are known before.
  const cues = (first) => {
    let place = first;
    return element("1C53BB6B", ...clusters.map((cluster, second) => {
      const cue = element("BB", element("B3", bytes(second * 1000, 4)),
        element("B7", element("F7", [1]), element("F1", bytes(place, 8))));
      place += cluster.size;
      return cue;
    }));
  };
  const first = information.size + tracks.size + cues(0).size;
  const segment = element("18538067", information, tracks, cues(first), ...clusters);
  return new Blob([head, segment], { type: "video/webm" });
}

function happened(video, event) {
  return new Promise((resolve, reject) => {
    video.addEventListener(event, resolve, { once: true });
    video.addEventListener("error", () => reject(new Failed(`the film does not play: ${video.error?.message}`)));
  });
}

async function seek(video, second) {
  const end = happened(video, "seeked");
  video.currentTime = second + 0.5;
  await end;
}

function expectPicture(video, second) {
  const context = new OffscreenCanvas(1, 1).getContext("2d");
  context.drawImage(video, WIDTH / 2, HEIGHT / 2, 1, 1, 0, 0, 1, 1);
  const [red, green, blue] = context.getImageData(0, 0, 1, 1).data;
  const isRight = [red, green, blue].every((part, index) => Math.abs(part - color(second)[index]) <= TOLERANCE);
  expect(isRight, `second ${second} has the color ${[red, green, blue]} and not ${color(second)}`);
}

// Seeks to the end of the film and back, and plays a moment.
export async function watchFilm(address) {
  const video = document.createElement("video");
  video.muted = true;
  video.preload = "metadata";
  // Without this, the page may show the film, but not look at its pictures.
  const isReadable = new URLSearchParams(location.search).get("crossorigin") !== null;
  if (isReadable) video.crossOrigin = "anonymous";
  document.body.append(video);
  const ready = happened(video, "loadedmetadata");
  video.src = address;
  await ready;
  expect(video.duration === SECONDS, `the film lasts ${video.duration} s`);
  for (const second of [SECONDS - 5, 7, SECONDS - 20]) {
    await seek(video, second);
    if (isReadable) expectPicture(video, second);
  }
  const before = video.currentTime;
  const moved = happened(video, "timeupdate");
  await video.play();
  await moved;
  while (video.currentTime <= before) await happened(video, "timeupdate");
  return { width: video.videoWidth };
}
