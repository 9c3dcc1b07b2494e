@echo off
rem Encodes ten seconds of a test pattern with the first hardware encoder that works, and prints its name.
rem Exits with 1 if none works.
for %%e in (h264_nvenc h264_amf h264_qsv) do (
    "%~dp0ffmpeg.exe" -hide_banner -loglevel error -f lavfi -i testsrc2=duration=10:size=1280x720:rate=30 -pix_fmt nv12 -c:v %%e -f null - && (
        echo encoder: %%e
        exit /b 0
    )
)
echo error: no hardware encoder works 1>&2
exit /b 1
