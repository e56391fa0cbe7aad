// Uploads and plays by links of a service at another origin. The address names the scenario and the link; the
// result goes to /report.

const parameters = new URLSearchParams(location.search);
const link = parameters.get("service");
const SEEK_SECONDS = 30;
const PLAY_SECONDS = 0.5;

async function upload() {
  const { Upload } = await import("/tus-js-client.js");
  const file = await (await fetch("/source")).blob();
  return new Promise((resolve, reject) => {
    const upload = new Upload(file, {
      endpoint: link,
      metadata: { filename: "page.webm", filetype: "video/webm" },
      retryDelays: Array(1000).fill(100),
      // By default it gives up while the browser has no network.
      onShouldRetry: () => true,
      onSuccess: () => resolve({ url: upload.url }),
      onError: reject,
    });
    upload.start();
  });
}

async function play() {
  const video = document.querySelector("video");
  const happens = (name) => new Promise((resolve, reject) => {
    video.addEventListener(name, resolve, { once: true });
    video.addEventListener("error", () => reject(video.error.message), { once: true });
  });
  const isLoaded = happens("loadedmetadata");
  video.src = link;
  await isLoaded;
  const isThere = happens("seeked");
  video.currentTime = SEEK_SECONDS;
  await isThere;
  const from = video.currentTime;
  await video.play();
  while (video.currentTime < from + PLAY_SECONDS) await happens("timeupdate");
  return { duration: video.duration, width: video.videoWidth, from, to: video.currentTime };
}

async function outcome() {
  try {
    return { answer: await { upload, play }[parameters.get("scenario")]() };
  } catch (error) {
    return { error: `${error}` };
  }
}

const report = { run: parameters.get("run"), ...(await outcome()) };
await fetch("/report", { method: "POST", body: JSON.stringify(report) });
