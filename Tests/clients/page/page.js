// What a page does that uploads to Kedge from another origin. The address names the scenario and the service;
// what came of it goes to /report.

import { makeFilm, watchFilm } from "/film.js";

const parameters = new URLSearchParams(location.search);
const service = parameters.get("service");
const MEBIBYTE = 1 << 20;

// Set once it is loaded, so that a failure to load it is reported as well.
let Upload;

class Failed extends Error {}

function pause(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

function expect(condition, reason) {
  if (!condition) throw new Failed(reason);
}

// The file that a user would have picked: the same one after a reload.
async function pickFile() {
  const answer = await fetch("/source");
  return new File([await answer.blob()], "source.bin", {
    type: "application/octet-stream",
    lastModified: 0,
  });
}

// An upload by tus-js-client that goes on after as many failures as there may be. The address may name a link to use
// as endpoint, or a token.
function tusUpload(file, options = {}) {
  let upload;
  const token = parameters.get("token");
  const end = new Promise((resolve, reject) => {
    upload = new Upload(file, {
      endpoint: parameters.get("endpoint") ?? `${service}/tus/`,
      headers: token ? { Authorization: `Bearer ${token}` } : {},
      metadata: { filename: file.name, filetype: file.type },
      retryDelays: Array(1000).fill(50),
      onSuccess: () => resolve({ url: upload.url }),
      onError: reject,
      ...options,
    });
  });
  return { upload, end };
}

async function tus() {
  const { upload, end } = tusUpload(await pickFile());
  upload.start();
  return end;
}

// Each part is an upload of its own; the service puts them together.
async function tusInParts() {
  const concats = [];
  let linkCount = 0;
  const { upload, end } = tusUpload(await pickFile(), {
    parallelUploads: 3,
    onAfterResponse: (request, response) => {
      if (request.getMethod() === "POST" && response.getStatus() === 201) {
        const [kind, parts = ""] = request.getHeader("Upload-Concat").split(";");
        concats.push(kind);
        linkCount += parts.split(" ").filter((part) => part.includes("?link=kl1.")).length;
      }
    },
  });
  upload.start();
  return { ...(await end), concats, linkCount };
}

// The page goes away while bytes are on their way, and goes on when it is back.
async function tusAfterReload() {
  const file = await pickFile();
  const isBack = sessionStorage.getItem("left") !== null;
  let resumedAt = null;
  const { upload, end } = tusUpload(file, {
    onProgress: (sent) => {
      if (isBack || sent < file.size / 2 || sessionStorage.getItem("left")) return;
      sessionStorage.setItem("left", "yes");
      location.reload();
    },
    onAfterResponse: (request, response) => {
      if (isBack && request.getMethod() === "HEAD") {
        resumedAt ??= Number(response.getHeader("Upload-Offset"));
      }
    },
  });
  if (isBack) {
    const previous = await upload.findPreviousUploads();
    expect(previous.length === 1, `${previous.length} uploads are remembered`);
    upload.resumeFromPreviousUpload(previous[0]);
  }
  upload.start();
  return { ...(await end), resumedAt };
}

async function tusTermination() {
  const file = await pickFile();
  const statuses = [];
  let isGone;
  const { upload, end } = tusUpload(file, {
    onProgress: (sent) => {
      if (sent > 0) isGone ??= upload.abort(true);
    },
    onAfterResponse: (request, response) => {
      if (request.getMethod() !== "HEAD") {
        statuses.push(`${request.getMethod()} ${response.getStatus()}`);
      }
    },
  });
  upload.start();
  // An upload that is aborted neither succeeds nor fails.
  let hasEnded = false;
  end.finally(() => { hasEnded = true; }).catch(() => {});
  while (!isGone && !hasEnded) await pause(20);
  expect(isGone, "it ended before it could be aborted");
  await isGone;
  const answer = await fetch(upload.url, { method: "HEAD", headers: { "Tus-Resumable": "1.0.0" } });
  return { statuses: [...statuses, `HEAD ${answer.status}`] };
}

async function ask(address, method, headers, body) {
  const answer = await fetch(address, { method, headers, body });
  expect(answer.ok, `${method} ${new URL(address).pathname}: ${answer.status}`);
  return answer;
}

async function ietf() {
  const file = await pickFile();
  const half = file.size >> 1;
  const version = { "Upload-Draft-Interop-Version": "8" };
  const created = await ask(`${service}/files`, "POST", {
    ...version,
    "Upload-Complete": "?0",
    "Content-Type": file.type,
    "Content-Disposition": `attachment; filename="${file.name}"`,
  }, file.slice(0, half));
  const upload = new URL(created.headers.get("Location"), service).href;
  const state = await ask(upload, "HEAD", version);
  expect(state.headers.get("Upload-Complete") === "?0", "half an upload is complete");
  expect(Number(state.headers.get("Upload-Offset")) === half, "half an upload has another offset");
  const ended = await ask(upload, "PATCH", {
    ...version,
    "Content-Type": "application/partial-upload",
    "Upload-Offset": `${half}`,
    "Upload-Complete": "?1",
  }, file.slice(half));
  return { url: new URL(ended.headers.get("Content-Location"), service).href };
}

async function sha256(blob) {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", await blob.arrayBuffer()));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function native() {
  const file = await pickFile();
  const json = { "Content-Type": "application/json" };
  const created = await ask(`${service}/uploads/sessions`, "POST", {
    ...json,
    "Idempotency-Key": crypto.randomUUID(),
  }, JSON.stringify({ fileName: file.name, fileSize: file.size, mimeType: file.type }));
  const session = await created.json();
  const address = new URL(created.headers.get("Location"), service).href;
  for (let index = 0; index < session.totalChunks; index += 1) {
    const first = index * session.chunkSize;
    const chunk = file.slice(first, first + session.chunkSize);
    await ask(`${address}/chunks/${index}`, "PUT", {
      "Content-Range": `bytes ${first}-${first + chunk.size - 1}/${file.size}`,
      "X-Chunk-Hash": `sha256=${await sha256(chunk)}`,
    }, chunk);
  }
  let ended = await ask(`${address}/finalize`, "POST", json, "{}");
  for (let round = 0; ended.status === 202 && round < 100; round += 1) {
    await pause(1000 * Number(ended.headers.get("Retry-After")));
    ended = await ask(`${address}/finalize`, "POST", json, "{}");
  }
  const { remoteFileId } = await ended.json();
  return { url: `${service}/files/${remoteFileId}` };
}

// A range, and with its entity tag the next one.
async function ranges() {
  const file = await pickFile();
  const address = parameters.get("file");
  const first = await ask(address, "GET", { Range: `bytes=0-${MEBIBYTE - 1}` });
  const etag = first.headers.get("ETag");
  const size = first.headers.get("Content-Range");
  expect(size === `bytes 0-${MEBIBYTE - 1}/${file.size}`, `the range is ${size}`);
  const second = await ask(address, "GET", { Range: `bytes=${MEBIBYTE}-`, "If-Range": etag });
  expect(second.status === 206, `the rest came with ${second.status}`);
  const whole = new Blob([await first.blob(), await second.blob()]);
  expect(await sha256(whole) === await sha256(file), "other bytes came back");
  return { etag };
}

// What a page may do that the service knows, and no other. A browser sends the first two without asking.
async function attempts() {
  const attempts = {
    "POST /files": () => fetch(`${service}/files`, { method: "POST", body: "planted" }),
    "POST /files, unread": () =>
      fetch(`${service}/files`, { method: "POST", mode: "no-cors", body: "planted" }),
    "GET /files": () => fetch(`${service}/files`),
    "tus": () => {
      const file = new File(["planted"], "planted");
      const { upload, end } = tusUpload(file, { retryDelays: [] });
      upload.start();
      return end.then(() => new Response(null, { status: 201 }));
    },
  };
  const outcomes = {};
  for (const [name, attempt] of Object.entries(attempts)) {
    outcomes[name] = await attempt().then((answer) => answer.status, () => "refused");
  }
  return outcomes;
}

// Makes a film and sends it in one request.
async function sendFilm() {
  const film = await makeFilm();
  const answer = await ask(parameters.get("endpoint"), "POST", {
    "Content-Type": film.type,
    "Content-Disposition": 'attachment; filename="film.webm"',
  }, film);
  return { file: (await answer.json()).remoteFileId, byteCount: film.size, sha256: await sha256(film) };
}

function watch() {
  return watchFilm(parameters.get("film"));
}

const scenarios = {
  tus, tusInParts, tusAfterReload, tusTermination, ietf, native, ranges, attempts, sendFilm, watch,
};

async function outcome() {
  try {
    ({ Upload } = await import("/tus-js-client.js"));
    return { answer: await scenarios[parameters.get("scenario")]() };
  } catch (error) {
    return { error: `${error}` };
  }
}

const report = { run: parameters.get("run"), ...(await outcome()) };
await fetch("/report", { method: "POST", body: JSON.stringify(report) });
