// WebRTC goes past the policy of a page; nobody needs it here.
for (const name of ["RTCPeerConnection", "webkitRTCPeerConnection"]) delete window[name];
