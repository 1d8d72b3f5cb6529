-- PodGroup of Volcano, v1beta1.
local meanings = {
  Running = "Healthy",
  Completed = "Healthy",
  Unknown = "Unknown",
}
local phase = ""
if obj.status ~= nil then
  phase = obj.status.phase or ""
end
local status = meanings[phase] or "Progressing"
if phase == "" then
  phase = "Not started"
end
local message = phase
if obj.status ~= nil and obj.status.message ~= nil and obj.status.message ~= "" then
  message = phase .. ": " .. obj.status.message
end
return {status = status, message = message}
